//! The terms of a text: what the lexical index, the facts and the trimming compare by.
//!
//! | in the text | terms |
//! |---|---|
//! | `The hikers' Trails` | `the`, `hiker`, `trail`: folded, lower-case, English stems |
//! | `parseHttpBody`, `max_open_files` | their parts, and the name as a whole |
//! | `src/main.rs`, `a.b.c`, `std::fs`, `gpt-4` | their parts, and all of it as a whole |
//! | `图书馆` | pairs of neighbours: `图书`, `书馆`; a character that stands alone by itself |
//!
//! Everything is linear in the text, and no term is longer than [`LONGEST_TERM`].

mod fold;
mod scan;
mod stop;
mod weight;
mod word;

pub use scan::{LONGEST_TERM, Term, TermKind, Terms};
pub use stop::is_stop_word;
pub use weight::{is_emoji, weight, without_case};
