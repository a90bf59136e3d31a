//! Text analysis: [`WordList`]s as data, and the [`Terms`] of a text, used by the lexical index, the facts
//! and the trimming.
//!
//! | in the text | terms |
//! |---|---|
//! | `The hikers' Trails` | `the`, `hiker`, `trail`: folded, lower-case, English stems |
//! | `parseHttpBody`, `max_open_files` | their parts, and the whole name |
//! | `src/main.rs`, `a.b.c`, `std::fs`, `gpt-4` | their parts, and the whole name |
//! | `图书馆` | overlapping pairs: `图书`, `书馆`; an isolated character by itself |
//!
//! Everything is linear in the text, and no term is longer than 96 bytes.

#![forbid(unsafe_code)]

mod fold;
mod scan;
mod stop;
mod weight;
mod word;
mod word_list;

pub use scan::{Term, TermKind, Terms};
pub use weight::{is_emoji, weight, without_case};
pub use word_list::WordList;
