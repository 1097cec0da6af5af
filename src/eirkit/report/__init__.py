"""Things to look at: tables, charts, pages, the paper's studies, the viewer. Nothing is computed here."""
