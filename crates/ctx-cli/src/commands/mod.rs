//! One command a file.

pub(crate) mod assemble;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod engines;
pub(crate) mod eval;
pub(crate) mod replay;
pub(crate) mod sessions;
pub(crate) mod status;
