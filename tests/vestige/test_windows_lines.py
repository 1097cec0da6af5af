"""Signs of Windows are looked for only where a part of them occurs; that finds what looking for all of them finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.vestige.shell import powershell_commands
from eirkit.vestige.shell.powershell_commands import is_windows

SIGNS = (
    powershell_commands._CMDLET,
    powershell_commands._PLACE,
    powershell_commands._DOS,
    powershell_commands._FILE_CLASS,
)
PARTS = [
    *("get-content", "Set-Content", "CLEAR-CONTENT", "select-string", "out-file", "out-null", "Tee-Object", "new-item"),
    *("get-childitem", "test-path", "push-location", "invoke-webrequest", "ConvertFrom-Json", "write-host", "my-item"),
    *(
        "C:\\",
        "c:\\\\",
        ".\\a",
        "..\\b",
        "type a\\b",
        "cmd /c more x\\y",
        "del \\",
        "[IO.File]::Read(x",
        "[System.IO.file]::",
    ),
    *(" ", ";", "|", "\n", "(", "=", "-", "\\", "[", ".", ":", "a", "grep -n", "sed -i 's/a\\b/c/'"),
]


@given(st.lists(st.sampled_from(PARTS), max_size=6).map("".join))
def test_signs_are_found_as_if_each_were_looked_for_everywhere(line):
    assert is_windows(line) == any(sign.search(line) for sign in SIGNS)


@pytest.mark.parametrize(
    "line", ["get-content a", "x;Copy-Item a b", "cd C:\\a", "type a\\b.txt", "[IO.File]::Open('a')"]
)
def test_signs_are_found(line):
    assert is_windows(line)
