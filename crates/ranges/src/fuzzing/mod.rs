//! Operations, oracles and checks, for tests and fuzz targets.
