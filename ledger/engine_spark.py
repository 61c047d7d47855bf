"""Apache Spark: every task is one partition that `mapInArrow` hands to the kernel; nothing is shuffled.

Task and result travel as bytes in an Arrow column. Workers need the Python environment of this process and
the same way to the objects. Tasks go out in waves, so that neither this process nor the JVM beside it ever
holds more results than a wave and what has been joined.

A LedgerError of a kernel comes back as itself; one that trying again may mend (storage) only once Spark has
tried as often as it is set to.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from contracts.errors import LedgerError, StorageError, UsageError
from ledger.engines import Kernel, Result, Task, failed, share

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

APP = "evaluator-ledger"
WAVE = 4  # tasks in a wave for each core of the cluster
COLUMNS = "task long, payload binary"
SCHEMA = pa.schema({"task": pa.int64(), "payload": pa.binary()})
_CLUSTER_ATTEMPTS = 4  # Spark's own default
# Ours alone; whatever spark-defaults.conf or the environment say of them wins.
_SETTINGS = {
    "spark.app.name": APP,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.maxResultSize": "0",  # a wave has a known size
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
}


class Spark:
    """A Spark application, made when the first work comes; `master` None is the environment's own.

    A session that this process has already is used and left as it is.
    """

    def __init__(self, master: str | None = None) -> None:
        _require_spark()
        self._master = master
        self._session: SparkSession | None = None
        self._log: IO[bytes] | None = None
        self._ours = False

    def pieces(self, entries: int) -> int:
        """See Engine."""
        workers = int(self._context.defaultParallelism)
        return max(share(entries, workers), workers)

    def map(self, kernel: Kernel[Task, Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """See Engine."""
        attempts = _attempts(self._context)
        run = _Partition(pickle.dumps(kernel, protocol=pickle.HIGHEST_PROTOCOL), attempts)
        size = WAVE * self._context.defaultParallelism
        for start in range(0, len(tasks), size):
            yield from self._wave(run, tasks[start : start + size])

    def close(self) -> None:
        """See Engine."""
        if self._ours:
            with suppress(Exception):  # a JVM that is gone already has nothing to be stopped
                if self._session is not None:
                    self._session.stop()
            _end_gateway()
        if self._log is not None:
            self._log.close()
        self._session, self._log, self._ours = None, None, False

    def _wave(self, run: _Partition, tasks: Sequence[Task]) -> list[Any]:
        rows = [
            (number, pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL))
            for number, task in enumerate(tasks)
        ]
        assert self._session is not None, "the context was asked for first"
        parts = self._context.parallelize(rows, len(rows))
        frame = self._session.createDataFrame(parts, COLUMNS, verifySchema=False)
        try:
            found = frame.mapInArrow(run, COLUMNS).collect()
        except KeyboardInterrupt:
            with suppress(Exception):
                self._context.cancelAllJobs()
            raise
        except Exception as error:
            raise _failed(error, tasks) from error
        made: list[Any] = []
        for _, payload in sorted((int(row[0]), bytes(row[1])) for row in found):
            results = pickle.loads(payload)  # noqa: S301 (from a worker that we sent the kernel)
            if isinstance(results, LedgerError):
                raise results
            made += results
        return made

    @property
    def _context(self) -> SparkContext:
        if self._session is None:
            self._session = self._started()
        return self._session.sparkContext

    def _started(self) -> SparkSession:
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        conf = SparkConf()
        if self._master is not None:
            conf.setMaster(self._master)
        for name, value in _SETTINGS.items():
            conf.setIfMissing(name, value)
        if conf.get("spark.master", "local[*]").startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        self._log = TemporaryFile()  # noqa: SIM115 (the JVM writes to it as long as it lives)
        self._ours = True
        try:
            # The JVM and its workers write to standard error whatever the log level says.
            gateway = launch_gateway(conf=conf, popen_kwargs={"stderr": self._log})
            context = SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            told = self._told()
            self.close()
            raise StorageError(
                f"Spark does not start: {told or _first_line(error)}",
                code="no-engine", where=f"--engine spark{':' + self._master if self._master else ''}",
                next_step="see docs/scale.md for what Spark needs",
            ) from error  # fmt: skip
        return SparkSession(context)

    def _told(self) -> str:
        """The line in which the JVM says what is wrong, empty where there is none."""
        assert self._log is not None, "opened before the JVM was started"
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        telling = [line for line in lines if "Error" in line or "Exception" in line]
        return re.sub(r'^Exception in thread "[^"]*" ', "", telling[0].strip())[:200] if telling else ""


@dataclass(frozen=True)
class _Partition:
    """What a worker does with the tasks of its partition: the function that `mapInArrow` is given."""

    kernel: bytes
    attempts: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kernel = pickle.loads(self.kernel)  # noqa: S301 (from the driver)
        for batch in batches:
            for number, payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                done = pickle.dumps(self._done(kernel, payload), protocol=pickle.HIGHEST_PROTOCOL)
                yield pa.record_batch([pa.array([number]), pa.array([done], pa.binary())], schema=SCHEMA)

    def _done(self, kernel: Callable[[Any], Any], payload: bytes) -> list[Any] | LedgerError:
        """All results of a task, or the error that trying it again will not mend."""
        from pyspark import TaskContext

        context = TaskContext.get()
        last = context is None or context.attemptNumber() + 1 >= self.attempts
        task = pickle.loads(payload)  # noqa: S301 (from the driver)
        try:
            return list(kernel(task))
        except LedgerError as error:
            if isinstance(error, StorageError) and not last:
                raise
            return error
        except Exception as error:
            if not last:
                raise
            return failed(task, error)


def _attempts(context: SparkContext) -> int:
    """How often Spark tries a task before it gives up on the job."""
    local = re.fullmatch(r"local(?:\[[^,\]]*(?:, *(\d+))?\])?", context.master)
    if local is not None:
        return int(local[1] or 1)
    return int(context.getConf().get("spark.task.maxFailures") or _CLUSTER_ATTEMPTS)


def _failed(error: Exception, tasks: Sequence[object]) -> StorageError:
    """What Spark says of a job that it gave up on, with the task that it names."""
    text = str(error)
    named = re.search(r"Task (\d+) in stage", text)
    where = str(tasks[int(named[1])]) if named is not None and int(named[1]) < len(tasks) else None
    missing = re.search(r"ModuleNotFoundError: No module named '([^']+)'", text)
    if missing is not None:
        return StorageError(
            "workers lack a module", code="no-engine", got=missing[1],
            expected="the Python environment of this process",
            next_step="set PYSPARK_PYTHON, or send the environment along: docs/scale.md",
        )  # fmt: skip
    cause = re.search(r"(?:Exception|Error): (.*)", text)
    told = "a worker died" if re.search(r"worker (?:exited|crashed)|ExecutorLost", text) else "a task failed"
    return StorageError(
        f"{told}, and Spark gave up", code="engine-task", where=where,
        got=(cause[1] if cause else _first_line(error))[:200],
        next_step="see whether memory ran out (docs/scale.md), and run again: nothing was recorded",
    )  # fmt: skip


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def _end_gateway() -> None:
    """Stop the JVM that was started for us; it would otherwise live as long as this process."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait(10)
        SparkContext._gateway = SparkContext._jvm = None


def _require_spark() -> None:
    """UsageError `missing-extra` where Spark is not installed, StorageError `no-engine` where Java is not."""
    import shutil
    from importlib.util import find_spec

    lacking = [name for name in ("pyspark", "pandas") if find_spec(name) is None]
    if lacking:
        raise UsageError(
            "Spark is not installed", code="missing-extra", got=f"no {' and no '.join(lacking)}",
            next_step="pip install 'evaluator-ledger[spark]'",
        )  # fmt: skip
    java = os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java")
    if shutil.which("java") is None and not os.access(java, os.X_OK):
        raise StorageError(
            "Spark needs Java 17 or newer", code="no-engine", got="no java",
            next_step="apt-get install openjdk-17-jre-headless, or set JAVA_HOME",
        )  # fmt: skip
