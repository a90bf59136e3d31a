//! Names each layer crate once, a feature each: linking it fills the registry.
