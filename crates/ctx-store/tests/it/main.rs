//! The protocol of the leases.

mod model;
