"""What no user of the package runs: training, calibration, and studies without a published partner."""
