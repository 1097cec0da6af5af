"""Parallel map over pieces of work, on local processes or on Ray, with the same results."""

ENGINES = {"local": "eirkit.engine.processes:Processes", "ray": "eirkit.engine.ray_tasks:RayTasks"}
