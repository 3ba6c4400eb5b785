"""A stand-in for airflow: as much of it as the examples use."""
