//! The carriers, as a host meets them.
