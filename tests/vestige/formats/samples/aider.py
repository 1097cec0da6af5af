"""aider 0.86.2 (November 2026): two chats, with an edit, a file that joins the chat, and one without a prompt."""

from __future__ import annotations

HISTORY = """
# aider chat started at 2026-11-16 17:05:01

> Aider v0.86.2
> Model: openai/fake-model with diff edit format
> Git repo: .git with 4 files
> Added a.py to the chat.

#### Mend a.py

I change it.

a.py
```python
<<<<<<< SEARCH
x = 1
=======
x = 2
>>>>>>> REPLACE
```

> Tokens: 2.0k sent, 1.5k cache hit, 20 received.
> Applied edit to a.py
> Added 7 lines of output to the chat.
> Attempt to fix test errors? (Y)es/(N)o [Yes]: y

Please add b.py to the chat.

> Tokens: 2.1k sent, 20 received.
> b.py
> Add file to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: y

Done.

> Tokens: 2.2k sent, 20 received.

# aider chat started at 2026-11-16 17:06:24

> Aider v0.86.2
> Added a.py to the chat.
"""

# aider ends its own lines and those of the user with two spaces.
LINES = [f"{line}  " if line.startswith((">", "####")) else line for line in HISTORY.split("\n")]

FILES = {"aider.chat.history.md": "\n".join(LINES).encode()}
