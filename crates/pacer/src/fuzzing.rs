//! Operations, oracle and check, for tests and fuzz targets.
