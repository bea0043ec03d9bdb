"""The store: one database with studies, their logs, answers and evidence.

    store = Store.open("runs.db")                  # or sqlite:///runs.db, postgresql://...
    for study in store.studies(): ...
    summary = store.summary(store.study("resnet-small-digits"))

Each method is one short transaction. Nothing of the search or the evaluation runs inside one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Select, false, select, update

from syno._util import checks
from syno._util.command_line import command_line
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.store import (
    leasing,
    log,
    outcomes,
    presence,
    schema,
)
from syno.store.check import Finding, findings, sqlite_findings
from syno.store.database import Database, StoreAddress, now, parse_address
from syno.store.errors import AskTakenError, damaged, not_a_store
from syno.store.evaluation import Evaluation
from syno.store.findings import Findings
from syno.store.limits import check_limit
from syno.store.measurements import Measurements
from syno.store.migrations import check_version, migrate, sealed_version, stored_version
from syno.store.names import check_name
from syno.store.presence import Presence
from syno.store.quarantine import Quarantine
from syno.store.raw import NamedRow
from syno.store.records import (
    Environment,
    EventRecord,
    Outcome,
    ProposalRecord,
    RungResult,
    StudyRecord,
    WorkerRecord,
)
from syno.store.rows import add, find_or_add
from syno.store.seals import seal
from syno.store.state import StudyState
from syno.store.summary import StudySummary, evaluations, summarize

TIMEOUT_S = 10.0


class Store:
    """An open store. Safe to use from several threads; every process opens its own.

    presence: who works on it; quarantine: operators that fail; measurements: of other machines.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._url = database.address.name
        self.presence = Presence(database)
        self.quarantine = Quarantine(database)
        self.measurements = Measurements(database)

    @classmethod
    def open(
        cls, url: str, *, create: bool = True, read_only: bool = False, timeout: float = TIMEOUT_S
    ) -> Store:
        """Opens the store at `url` (a file or a database URL), made new when there is none.

        create: whether to make it; read_only: reads without writing a byte, so it works on a
        write-protected file; timeout: seconds to wait for another process that is writing.
        An older store is brought up to date, unless it is opened for reading only.

        UserError: not a store, written by a newer Syno, locked, read-only, missing, disk full.
        DamagedError: a store that is not as it was written; all of it is looked at (`check.py`).
        """
        address = parse_address(url)
        create = create and not read_only
        if _is_there(address):
            # Looked at by a connection that cannot change a damaged file.
            _check_existing(url, address, timeout, writable=not read_only, create=create)
        database = Database.of(url, address, create=create, read_only=read_only, timeout=timeout)
        store = cls(database)
        store._url = url
        try:
            if not read_only:
                with database.writing() as connection:
                    if not create and stored_version(connection, store.name) == 0:
                        raise not_a_store(store.name, "it is empty")
                    migrate(connection, address.name)
                    # SQLite opens what it may not write and says so at the first change only.
                    nothing = update(schema.schema_version).where(false())
                    connection.execute(nothing.values(version=0))
        except BaseException:
            store.close()
            raise
        return store

    def _look(self, *, writable: bool, create: bool) -> list[Finding]:
        """What is damaged; UserError for what this Syno cannot open."""
        with self.database.snapshot() as connection:
            version = sealed_version(connection, self.name)
            check_version(version, self.name)
            if version == 0:
                if create:
                    return []
                raise not_a_store(self.name, "it is empty")
            if version >= schema.READABLE_SINCE:
                return findings(connection, version)
            found = sqlite_findings(connection)
        if found:
            raise damaged(self.name, map(str, found))
        if not writable:
            raise UserError(
                f"the store '{self.name}' has version {version} and this Syno needs version "
                f"{schema.VERSION}\n"
                "  what to do: make the file writable and run `syno resume` or `syno search` on it "
                "once: this migrates it"
            )
        return []

    @property
    def name(self) -> str:
        """The address as it may be shown: without a password."""
        return self.database.address.name

    @property
    def url(self) -> str:
        """The address with which another process on this machine opens it. It may hold a password,
        and is never shown."""
        return self._url if self.path is None else str(self.path.absolute())

    @property
    def path(self) -> Path | None:
        """The file of a SQLite store; None in memory and on a server."""
        return self.database.address.path

    @property
    def in_memory(self) -> bool:
        """Whether it ends with the process."""
        return self.database.address.in_memory

    def close(self) -> None:
        """Closes all connections; SQLite folds its log into the file."""
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def version(self) -> int:
        """The schema version of the store."""
        with self.database.reading() as connection:
            return stored_version(connection, self.name)

    def create_study(
        self,
        name: str,
        *,
        specification: tuple[str, Json],
        settings: Mapping[str, object],
        seed: int,
    ) -> StudyRecord:
        """Makes a study; `specification` is (key, JSON content). UserError when the name is taken.

        An empty last part ("digits-") is completed with the first free number ("digits-1").
        A name is a printable text: it stands in lines of a terminal and in commands.
        """
        check_name(name)
        key, content = specification
        column = schema.study.c
        with self.database.writing() as connection:
            taken = set(connection.scalars(select(column.name)))
            if name.endswith("-"):
                names = (f"{name}{number}" for number in itertools.count(1))
                name = next(free for free in names if free not in taken)
            if name in taken:
                raise UserError(
                    f"the store '{self.name}' has a study '{name}' already\n"
                    f"  what to do: continue it with `{self._resume(name)}`, or choose another name"
                )
            found = find_or_add(connection, schema.specification, {"key": key}, content=content)
            values = {"name": name, "specification_id": found, "settings": settings, "seed": seed}
            values["created"] = now(connection)
            head = seal(schema.study, values)  # where the chain of its log begins
            identity = add(connection, schema.study, **values, events=0, head=head)
        return self.study(identity)

    def _resume(self, study: str) -> str:
        """The command that continues a study."""
        return command_line("resume", store=self.name, study=study)

    def studies(self) -> list[StudyRecord]:
        """All studies, the oldest first."""
        with self.database.reading() as connection:
            return [_study_record(row) for row in connection.execute(_study_query())]

    def study(self, name: str | int | None = None) -> StudyRecord:
        """The study with this name or id; None takes the latest. UserError names those there."""
        if name is not None and not isinstance(name, int):
            checks.text("the name of a study", name)
        known = self.studies()
        found = [s for s in known if name is None or name in (s.name, s.id)]
        if found:
            return found[-1]
        if not known:
            raise UserError(
                f"the store '{self.name}' holds no study\n"
                "  what to do: start one with `syno search`"
            )
        names = ", ".join(s.name for s in known[-8:])
        raise UserError(
            f"there is no study '{name}' in the store '{self.name}'\n  expected: one of {names}"
        )

    def findings(self, study: StudyRecord, driver: int) -> Findings:
        """The log of an adaptation, for the process that drives it; driver: its token."""
        return Findings(self.database, study.id, driver)

    def append_event(self, study: StudyRecord, kind: str, data: Mapping[str, object]) -> int:
        """Adds a line to the study's log and gives its sequence number."""
        with self.database.writing() as connection:
            log.lock_study(connection, study.id)
            return log.append(connection, study.id, kind, data)

    def events(self, study: StudyRecord, after: int = 0) -> list[EventRecord]:
        """The study's log, in order, after the event with this number."""
        with self.database.reading() as connection:
            return log.events(connection, study.id, after)

    def proposals(self, study: StudyRecord) -> list[ProposalRecord]:
        """The study's proposals, in the order of asking."""
        with self.database.reading() as connection:
            return log.proposals(connection, study.id)

    def ask(
        self,
        study: StudyRecord,
        number: int,
        operator: tuple[str, str] | None,
        worker: str | None,
        *,
        limit: int | None = None,
        counted: bool = True,
        seen: int | None = None,
        driver: int | None = None,
        state: StudyState | None = None,
    ) -> ProposalRecord:
        """Stores a proposal and leases it to `worker`: see `log.ask`.

        limit: of the operators that are evaluated: see `limits.check_limit`.
        driver: the token of the driver that proposes; DriverLostError if it is not the present one.
        state: of the study, which is kept up; without it, all of the study is read for the limit.
        """
        with self.database.writing() as connection:
            end = log.lock_study(connection, study.id)
            if driver is not None:
                presence.check_driver(connection, study.id, driver)
            if limit is not None and operator is not None:
                state = state or StudyState(study)
                state.read(connection)
                check_limit(connection, state, limit, worker)
            return log.ask(
                connection, study.id, number, operator, worker, counted=counted, seen=seen, end=end
            )

    def check_limit(
        self, study: StudyRecord, limit: int, worker: str | None, state: StudyState | None = None
    ) -> None:
        """Looks whether `ask` would give `worker` another operator: see `limits.check_limit`."""
        state = state or StudyState(study)
        with self.database.snapshot() as connection:
            state.read(connection)
            check_limit(connection, state, limit, worker)

    def lease_open(
        self, study: StudyRecord, worker: str, *, counted: bool = True
    ) -> ProposalRecord | None:
        """Takes over an interrupted proposal, the earliest first; None when there is none."""
        with self.database.writing() as connection:
            return log.lease_open(connection, study.id, worker, counted=counted)

    def promote(
        self,
        proposal: int,
        rung: int,
        worker: str | None,
        *,
        counted: bool = True,
        driver: int | None = None,
        state: StudyState | None = None,
    ) -> int | None:
        """Opens an answered proposal for the next rung of a ladder: see `log.promote`.

        state: of the study, by which the proposal was chosen. If the study has other results by
        now, an AskTakenError says that the choice has to be made again.
        """
        with self.database.writing() as connection:
            study = log.study_of(connection, proposal)
            log.lock_study(connection, study)
            if driver is not None:
                presence.check_driver(connection, study, driver)
            if state is not None:
                before = state.versions
                state.read(connection)
                if state.versions != before:
                    raise AskTakenError(
                        f"the study has new results since proposal {proposal} was chosen"
                    )
            return log.promote(connection, proposal, rung, worker, counted=counted)

    def rung_results(self, study: StudyRecord) -> list[RungResult]:
        """The study's evaluations on the hold-out split, in the order in which they were told."""
        with self.database.reading() as connection:
            return log.rung_results(connection, study.id)

    def evaluations(self, study: StudyRecord) -> list[Evaluation]:
        """The study's evaluations on the validation split in float32, in the order of asking, and
        for each operator in the order in which they were told."""
        with self.database.reading() as connection:
            return evaluations(connection, study)

    def state(self, study: StudyRecord) -> StudyState:
        """Reads the whole study, as a value that `follow` keeps up."""
        made = StudyState(study)
        self.follow(made)
        return made

    def follow(self, state: StudyState) -> bool:
        """Reads into `state` what is new since its last event; whether there was anything."""
        with self.database.snapshot() as connection:
            return state.read(connection)

    def sequence(self, study: StudyRecord) -> int:
        """The number of events of the study: anything that happens in it adds one."""
        column = schema.study.c
        with self.database.reading() as connection:
            found = connection.scalar(select(column.events).where(column.id == study.id))
            return int(found or 0)

    def open_proposals(self, study: StudyRecord) -> list[tuple[int, bool]]:
        """The numbers of the pending proposals, each with whether somebody works on it."""
        with self.database.reading() as connection:
            return [(ask, held) for ask, held, _ in log.open_proposals(connection, study.id)]

    def unleased(self, study: StudyRecord) -> list[int]:
        """The numbers of the proposals that are open and that nobody works on."""
        return [ask for ask, is_held in self.open_proposals(study) if not is_held]

    def waiting(self, study: StudyRecord) -> int:
        """The number of the proposals that are open and that nobody works on."""
        with self.database.reading() as connection:
            return len(leasing.waiting(connection, study.id))

    def renew(self, proposal: int, worker: str) -> bool:
        """Writes a heartbeat; False when the lease went to somebody else."""
        with self.database.writing() as connection:
            presence.beat(connection, worker)
            return log.renew(connection, proposal, worker)

    def release(
        self, proposal: int, worker: str, *, counted: bool = True, ending: str = leasing.RELEASED
    ) -> None:
        """Gives an unanswered proposal back, to be evaluated by whoever comes next."""
        with self.database.writing() as connection:
            log.release(connection, proposal, worker, counted=counted, ending=ending)

    def lease(
        self, study: StudyRecord, worker: str, *, counted: bool = True
    ) -> ProposalRecord | None:
        """Takes a proposal of a driver; None when nothing waits: see `log.lease`."""
        if self.path is not None:  # a worker without work does not hold up the one writer of SQLite
            with self.database.reading() as connection:
                if not leasing.is_waiting(connection, study.id, worker):
                    return None
        with self.database.writing() as connection:
            return log.lease(connection, study.id, worker, counted=counted)

    def is_waiting(self, study: StudyRecord, worker: str | None = None) -> bool:
        """Whether `lease` would give `worker` a proposal."""
        with self.database.reading() as connection:
            return leasing.is_waiting(connection, study.id, worker)

    def losses(self, proposal: int) -> int:
        """How many workers were lost over the proposal since its last answer."""
        with self.database.reading() as connection:
            return leasing.losses(connection, proposal)

    def workers(self) -> list[WorkerRecord]:
        """The workers that announced themselves, in the order in which they came."""
        with self.database.reading() as connection:
            if stored_version(connection, self.name) < schema.SINCE[schema.worker.name]:
                return []
            return presence.workers(connection)

    def driven(self) -> list[StudyRecord]:
        """The studies with a driver, whose proposals workers take, the oldest first."""
        with self.database.reading() as connection:
            query = _study_query().where(schema.study.c.id.in_(presence.driven()))
            return [_study_record(row) for row in connection.execute(query)]

    def tell(
        self,
        proposal: int,
        outcome: Outcome,
        environment: Environment,
        worker: str | None = None,
        token: int | None = None,
    ) -> None:
        """Stores the answer to a proposal: see `outcomes.tell`."""
        with self.database.writing() as connection:
            outcomes.tell(connection, proposal, outcome, environment, worker, token)

    def add_evaluation(
        self, study: StudyRecord, ask: int, outcome: Outcome, environment: Environment
    ) -> None:
        """Stores a further evaluation of an answered proposal: see `outcomes.add_evaluation`."""
        with self.database.writing() as connection:
            outcomes.add_evaluation(connection, study.id, ask, outcome, environment)

    def summary(self, study: StudyRecord | str | int | None = None) -> StudySummary:
        """The whole study as one value, for reports and export."""
        record = study if isinstance(study, StudyRecord) else self.study(study)
        with self.database.reading() as connection:
            return summarize(connection, record)


def _is_there(address: StoreAddress) -> bool:
    """Whether there may be something to look at."""
    if address.path is None:
        return not address.in_memory
    return address.path.is_file()


def _check_existing(
    url: str, address: StoreAddress, timeout: float, *, writable: bool, create: bool
) -> None:
    """UserError for what cannot be opened as it is."""
    database = Database.of(url, address, create=False, read_only=True, timeout=timeout)
    with Store(database) as looking:
        found = looking._look(writable=writable, create=create)
    if found:
        raise damaged(address.name, map(str, found))


def _study_query() -> Select[tuple[object, ...]]:
    column = schema.study.c
    return (
        select(
            column.id,
            column.name,
            schema.specification.c.content.label("specification"),
            column.settings,
            column.seed,
            column.created,
        )
        .join(schema.specification)
        .order_by(column.id)
    )


def _study_record(row: NamedRow) -> StudyRecord:
    return StudyRecord(**row._mapping)
