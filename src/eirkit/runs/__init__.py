"""Plans of runs: declared, checked, executed, stored whole or not at all, resumed, and summarised."""
