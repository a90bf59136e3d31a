//! The crate as its users see it.

mod accepted;
mod hygiene;
mod random;
mod wire;
