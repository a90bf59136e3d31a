//! Engines that are not built in.

mod carriers;
mod foreign;
