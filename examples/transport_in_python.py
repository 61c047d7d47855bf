"""A transport audit from Python, cell by cell.

Run it as a script, or open it as a notebook (cells start at `# %%`). It takes the shipped synthetic cohort
into a ledger in a folder that is thrown away; with a ledger of your own, start at the second cell with
`find("path/to/.ledger")`.
"""

# %% A ledger: a key outside of it, two evaluators, one file of scores.
import os
import tempfile
from pathlib import Path

from cli.demo_files import write
from ledger import channels
from ledger.home import init, signing_key
from ledger.ingest import ingest

folder = Path(tempfile.mkdtemp(prefix="ledger-example-"))
os.environ["XDG_CONFIG_HOME"] = str(folder / "config")  # the key and the pin of this example go there
scores, *specifications = write(folder)
home = init(folder / ".ledger", origin="example")
key = signing_key(home)
channels.add(home, key, specifications)
receipt = ingest(home, [scores], key=key)
print(f"{receipt.admitted:,} entries admitted")

# %% A snapshot is a verified, read-only view at a signed head; nothing else can be audited.
from ledger.snapshot import open_snapshot

snapshot = open_snapshot(home)
print(f"head {snapshot.size} of {snapshot.origin}, channels {', '.join(sorted(snapshot.book.names))}")

# %% The audit. Nothing is signed or logged from here: the command line does that.
from audits import transport

found = transport(snapshot, ref="direct", alt="generated")
print(found.sentence)

# %% Every number has an id; what is undefined is None with a reason.
interaction = found.estimates["interaction"]
print(f"interaction {interaction['value']:+.3f} {interaction['ci95']}, {interaction['verdict']}")
print(found.result["tables"]["flips"])

# %% One row per complete transition, for plots and joins. In a notebook, `found` alone shows its table.
rows = found.to_arrow()
print(rows.schema.names)
both = rows.filter((rows["gain.ref"].to_numpy() > 0) & (rows["gain.alt"].to_numpy() < 0))
print(f"{both.num_rows} transitions gain under direct and lose under generated")

# %% Other audits are asked in the same way.
from audits import mixture, pool

print(pool(snapshot, ["direct", "generated"], weights=[2, 1]).sentence)
print(mixture(snapshot, "direct", "generated", weights={"A": 0.5, "B": 0.5}).sentence)
