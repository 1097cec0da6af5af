"""Scripts for maintainers: training, calibration, and studies that have no published figure to compare with."""
