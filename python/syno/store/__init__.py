"""Where studies are kept: SQLite by default, PostgreSQL by URL.

Only this folder uses SQLAlchemy.
"""

from syno.store.bundles import Bundle, BundleRow, read_bundle, write_bundle
from syno.store.environment import capture_environment
from syno.store.errors import (
    AlreadyCompletedError,
    AskTakenError,
    DamagedError,
    DriverLostError,
    LeaseLostError,
    LimitReachedError,
    UnavailableError,
)
from syno.store.evaluation import Evaluation
from syno.store.lease import HEARTBEAT_S, Worker
from syno.store.measurements import DeviceMeasurement, Imported
from syno.store.names import automatic_name
from syno.store.records import (
    BaselineLatency,
    Environment,
    EventRecord,
    MeasurementResult,
    Outcome,
    ProposalRecord,
    QuarantineRecord,
    RungResult,
    StudyRecord,
    VerificationResult,
    WorkerRecord,
)
from syno.store.rungs import RungSummary
from syno.store.snapshot import Snapshots, back_up
from syno.store.state import StudyState
from syno.store.store import Store
from syno.store.summary import StudySummary, check_search, current_settings

__all__ = [
    "HEARTBEAT_S",
    "AlreadyCompletedError",
    "AskTakenError",
    "BaselineLatency",
    "Bundle",
    "BundleRow",
    "DamagedError",
    "DeviceMeasurement",
    "DriverLostError",
    "Environment",
    "Evaluation",
    "EventRecord",
    "Imported",
    "LeaseLostError",
    "LimitReachedError",
    "MeasurementResult",
    "Outcome",
    "ProposalRecord",
    "QuarantineRecord",
    "RungResult",
    "RungSummary",
    "Snapshots",
    "Store",
    "StudyRecord",
    "StudyState",
    "StudySummary",
    "UnavailableError",
    "VerificationResult",
    "Worker",
    "WorkerRecord",
    "automatic_name",
    "back_up",
    "capture_environment",
    "check_search",
    "current_settings",
    "read_bundle",
    "write_bundle",
]
