"""Tables keep every word, however narrow the terminal is."""

import io

from eirkit.cli.output import WholeConsole, table


def test_a_narrow_console_folds_sentences_but_cuts_no_table():
    stream = io.StringIO()
    console = WholeConsole(file=stream, width=20)
    console.print(
        table("A title", ("model", "arm"), [("reference/guesser", "control"), ("reference/recoverer", "sham")])
    )
    console.print("one two three four five six seven")
    lines = stream.getvalue().splitlines()
    assert any("reference/guesser" in line and "control" in line for line in lines)
    assert any("reference/recoverer" in line and "sham" in line for line in lines)
    assert max(len(line) for line in lines[-2:]) <= 20
