"""Results as types, and the database in which a folder keeps them.

Whoever reads a result imports this package and what shows it, never what runs agents.
"""

from eirkit.records.database import DATABASE as DATABASE
from eirkit.records.database import FinishedRun as FinishedRun
from eirkit.records.database import SweepDatabase as SweepDatabase
from eirkit.records.database import SweepWriter as SweepWriter
from eirkit.records.events import ActionTaken as ActionTaken
from eirkit.records.events import Decision as Decision
from eirkit.records.events import Event as Event
from eirkit.records.events import MemoryExchange as MemoryExchange
from eirkit.records.events import ModelExchange as ModelExchange
from eirkit.records.runs import Failure as Failure
from eirkit.records.runs import RunRecord as RunRecord
from eirkit.records.runs import RunScore as RunScore
from eirkit.records.runs import StepRecord as StepRecord
from eirkit.records.settings import Setting as Setting
from eirkit.records.sweeps import CellRow as CellRow
from eirkit.records.sweeps import Manifest as Manifest
from eirkit.records.sweeps import Spending as Spending
from eirkit.records.sweeps import Summary as Summary
