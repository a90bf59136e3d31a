//! What a program needs at a terminal.
//!
//! [`out::Out`] prints data on stdout and everything else on stderr. [`table`] and [`wrap`] fit text
//! to the terminal's width, [`mod@format`] formats numbers and escapes foreign text, [`files`] writes
//! output files atomically, [`failure`] turns errors into exit codes, and [`shutdown`] cleans up before
//! a signal ends the program.

#![forbid(unsafe_code)]

pub mod failure;
pub mod files;
pub mod format;
pub mod out;
pub mod shutdown;
pub mod table;
pub mod wrap;
