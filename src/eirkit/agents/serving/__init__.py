"""Behind real models: talking to servers, retries, prices, spending and the reply cache."""
