"""Runs: settings, the runs themselves, their manifests, merged results."""
