"""Strategies for the messages of MQDSRP."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.wire.base_replication_header import BaseReplicationHeader
from falconmq.wire.directory_change import DirectoryChange
from falconmq.wire.replication_messages import (
    AlreadyPurgedMessage,
    BSCAckMessage,
    ChangePropagationMessage,
    ChangeReplyMessage,
    ChangeRequestMessage,
    PSCAckMessage,
    ReplicationMessage,
    SyncReplyMessage,
    SyncRequestMessage,
)
from falconmq.wire.seq_number_header import PartitionSeqNumbers, SeqNumberHeader
from tests.strategies.properties import properties
from tests.strategies.wire import guids, texts, u32, u64

sequence_numbers = u64
identifiers = st.one_of(texts(), guids)

base_replication_headers = st.builds(
    BaseReplicationHeader, site_id=guids, operation=st.integers(0, 7)
)
partition_seq_numbers = st.builds(
    PartitionSeqNumbers,
    partition_id=guids,
    last_seq_number=sequence_numbers,
    purged_seq_number=sequence_numbers,
)
seq_number_headers = st.one_of(
    st.just(SeqNumberHeader()),  # without partitions there is no machine name on the wire
    st.builds(
        SeqNumberHeader,
        machine_name=texts(),
        partition_seq_numbers=st.lists(partition_seq_numbers, min_size=1, max_size=3),
    ),
)
directory_changes = st.builds(
    DirectoryChange,
    command=st.integers(0, 3),
    identifier=identifiers,
    partition_id=guids,
    previous_seq_number=sequence_numbers,
    seq_number=sequence_numbers,
    purged_seq_number=sequence_numbers,
    properties=properties(),
)
change_propagations = st.builds(
    ChangePropagationMessage,
    site_id=guids,
    directory_changes=st.lists(directory_changes, max_size=2),
    seq_number_header=seq_number_headers,
    flush=st.booleans(),
)
change_requests = st.builds(
    ChangeRequestMessage,
    site_id=guids,
    partition_id=guids,
    request_identifier=u32,
    requester_name=texts(),
    psc_name=st.none() | texts(),
    directory_change=directory_changes,
)
change_replies = st.builds(
    ChangeReplyMessage, site_id=guids, request_identifier=u32, result=u32, requester_name=texts()
)
sync_requests = st.builds(
    SyncRequestMessage,
    site_id=guids,
    partition_id=guids,
    from_seq_number=sequence_numbers,
    to_seq_number=sequence_numbers,
    known_purged_seq_number=sequence_numbers,
    is_sync0=st.booleans(),
    scope=st.integers(0, 1),
    requester_name=texts(),
)
sync_replies = st.builds(
    SyncReplyMessage,
    site_id=guids,
    partition_id=guids,
    from_seq_number=sequence_numbers,
    to_seq_number=sequence_numbers,
    purged_seq_number=sequence_numbers,
    complete_sync0=st.integers(0, 2),
    directory_changes=st.lists(directory_changes, max_size=2),
)
already_purged = st.builds(
    AlreadyPurgedMessage, site_id=guids, partition_id=guids, purged_seq_number=sequence_numbers
)
psc_acks = st.builds(
    PSCAckMessage,
    site_id=guids,
    psc_site_id=guids,
    acked_partition_id=guids,
    acked_seq_number=sequence_numbers,
    psc_name=texts(),
)
bsc_acks = st.builds(BSCAckMessage, site_id=guids, bsc_machine_id=guids, bsc_name=texts())

replication_messages: st.SearchStrategy[ReplicationMessage] = st.one_of(
    change_propagations,
    change_requests,
    sync_requests,
    sync_replies,
    change_replies,
    already_purged,
    psc_acks,
    bsc_acks,
)
