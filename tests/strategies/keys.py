"""Strategies for keys, certificates and the other small values the directory keeps."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.wire.public_key_blob import KEY_ALGORITHMS, PublicKeyBlob
from falconmq.wire.public_keys import PROVIDER_TYPES, PublicKey, PublicKeys
from falconmq.wire.sequence_info import SequenceInfo
from falconmq.wire.simple_blob import SESSION_KEY_ALGORITHMS, SimpleBlob
from falconmq.wire.ta_address import ADDRESS_LENGTHS, TaAddress
from falconmq.wire.user_sign_certs import UserSignCert, UserSignCerts
from tests.strategies.wire import guids, texts, u32


@st.composite
def public_key_blobs(
    draw: st.DrawFn, key_algorithms: tuple[int, ...] = KEY_ALGORITHMS
) -> PublicKeyBlob:
    bit_length = 8 * draw(st.integers(1, 64))
    modulus = draw(st.integers(0, (1 << bit_length) - 1))
    return PublicKeyBlob(modulus, draw(u32), draw(st.sampled_from(key_algorithms)), bit_length)


simple_blobs = st.builds(
    SimpleBlob,
    session_key_algorithm=st.sampled_from(SESSION_KEY_ALGORITHMS),
    encrypted_key=st.binary(min_size=1, max_size=256),
)
public_key_entries = st.builds(
    PublicKey,
    provider_name=texts(),
    provider_type=st.sampled_from(PROVIDER_TYPES),
    key_blob=public_key_blobs((0xA400,)).map(PublicKeyBlob.encode),
)
public_key_lists = st.builds(PublicKeys, keys=st.lists(public_key_entries, max_size=4))
user_sign_certs = st.builds(
    UserSignCert, identifier=guids, certificate=st.binary(max_size=64), digest=guids
)
user_sign_cert_lists = st.builds(UserSignCerts, certificates=st.lists(user_sign_certs, max_size=4))
ta_addresses = st.sampled_from(sorted(ADDRESS_LENGTHS.items())).flatmap(
    lambda row: st.builds(
        TaAddress, address_type=st.just(row[0]), address=st.binary(min_size=row[1], max_size=row[1])
    )
)
sequence_infos = st.builds(
    SequenceInfo, seq_id=st.integers(-(1 << 63), (1 << 63) - 1), seq_no=u32, prev_no=u32
)
