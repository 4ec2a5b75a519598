"""What the blocking and the asyncio objects of a remote client have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from uuid import UUID

from falconmq.client import places
from falconmq.client.places import Place
from falconmq.client.session import Json, Session
from falconmq.client.transactions import Work
from falconmq.manager.states import QueuePrivacy


class TransactionView:
    """A transaction, as far as this client knows it."""

    def __init__(self, work: Work) -> None:
        self.work = work

    @property
    def id(self) -> UUID:
        """Names it, for coordinators."""
        return self.work.id

    @property
    def is_active(self) -> bool:
        """Whether it has not ended, as far as is known here."""
        return self.work.is_active

    @property
    def is_prepared(self) -> bool:
        """Whether it was promised to a coordinator: it takes no more operations."""
        return self.work.is_prepared

    def __repr__(self) -> str:
        state = "prepared" if self.is_prepared else "active"
        return f"<Transaction {self.id}: {state if self.is_active else self.work.state}>"


def work_of(transaction: TransactionView | None) -> Work | None:
    return None if transaction is None else transaction.work


class QueueNames:
    """The names of a queue, which never change."""

    place: Place

    @property
    def name(self) -> str:
        r"""The path name, `.\private$\orders`; the format name of a queue on another computer."""
        return self.place.name

    @property
    def format_name(self) -> str:
        """How other programs and other computers address it."""
        return self.place.format_name

    @property
    def is_local(self) -> bool:
        """Whether it belongs to the queue manager that is asked; others can only be sent to."""
        return self.place.is_local

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"


class QueueFacts(QueueNames, ABC):
    """The properties of a queue, out of what the service says of it."""

    @property
    def label(self) -> str:
        return str(self._row["label"])

    @property
    def is_transactional(self) -> bool:
        return bool(self._row["transactional"])

    @property
    def journaling(self) -> bool:
        """Whether received messages leave a copy in `journal`."""
        return bool(self._row["journaling"])

    @property
    def quota_kilobytes(self) -> int:
        """KiB that its messages may take; 0xFFFFFFFF is no limit."""
        return places.quota(self._row, "quota_kilobytes")

    @property
    def journal_quota_kilobytes(self) -> int:
        return places.quota(self._row, "journal_quota_kilobytes")

    @property
    def authentication(self) -> bool:
        """Whether it takes signed messages only."""
        return bool(self._row["authentication"])

    @property
    def privacy_level(self) -> QueuePrivacy:
        return places.privacy(self._row)

    @property
    def base_priority(self) -> int:
        return int(self._row["base_priority"])

    @property
    def created_at(self) -> datetime:
        return places.moment(self._row, "created_at")

    @property
    def modified_at(self) -> datetime:
        return places.moment(self._row, "modified_at")

    @property
    def count(self) -> int:
        """How many messages are in it, those that a transaction holds included."""
        return int(self._sizes["messages"])

    @property
    def size_bytes(self) -> int:
        """How many bytes its messages take, against the quota."""
        return int(self._sizes["size_bytes"])

    @property
    @abstractmethod
    def _row(self) -> Json: ...

    @property
    @abstractmethod
    def _sizes(self) -> Json: ...


class ManagerNames:
    """Who the queue manager is."""

    session: Session

    @property
    def id(self) -> UUID:
        """Names this queue manager for ever; made with its data directory."""
        return self.session.id

    @property
    def computer_name(self) -> str:
        return self.session.computer_name

    @property
    def is_closed(self) -> bool:
        """Whether this client was closed; the queue manager itself goes on."""
        return self.session.is_closed

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        who = f"{self.computer_name} {{{self.id}}}"
        return f"<QueueManager {who} at {self.session.door.url}: {state}>"
