"""The paper's experiment on synthetic data."""
