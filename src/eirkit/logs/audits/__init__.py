"""What was lost on the way: clipped views, compactions, rereads, anomalies, window occupancy."""
