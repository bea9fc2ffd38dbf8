"""Real CLIs in real terminals, and what is shown of them, compared with what is so.

`python -m live [PART]`, or `make live ONLY=PART`. A scene is a row of `scenes.txt`, whose words are
in `words.py`; a scene or a walk is played on a `Stage`, and ends as a `Row` of figures:

* `stage.py`: a home, terminals in tmux or a Neovim, and the program under test. `claude.py` and
  `screens.py` add what Claude Code and the other CLIs need; `stands.py` has these CLIs.
* what is shown: `published.py`. What is so: `witness.py` and `account.py` (session files of Claude
  Code), `screens.py` (the screens of others), `heard.py` (reports in a terminal of Neovim).
* `play.py` plays scenes, `report.py` holds their figures against limits, `page.py` writes
  doc/truth.md, `seen.py` tells what a new version does otherwise.
* `walks`, `answers`, `machines`, `firstrun`, `others`: the other parts. `own`: how right other ways
  to know a status are, on recorded traces.
"""
