"""Local web server behind `eirkit view`: reads result folders and serves them as JSON on loopback."""
