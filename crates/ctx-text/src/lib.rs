//! Text analysis: [`read`] splits a text once into blocks, sentences and spans; [`WordList`]s are data; the
//! terms of a text ([`each_term`]) are used by the lexical index, the facts and the trimming.
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

mod acts;
mod clip;
mod fold;
mod gist;
mod injected;
pub mod output;
mod pattern;
mod plain;
mod reading;
mod scan;
mod sentences;
mod span;
mod word;
mod word_list;

pub use acts::{Marks, Signal, is_assent, is_courtesy, is_name, is_step, is_task, marks};
pub use clip::{clip_to_width, is_emoji, width};
pub use fold::is_cjk;
pub use gist::{Gist, gist};
pub use injected::without_injected;
pub use plain::{collapsed, without_case};
pub use reading::{Block, BlockKind, Reading, Sentence, read};
pub use scan::{Term, TermKind, each_term};
pub use sentences::{Bullet, bullet, clip, sentences};
pub use span::{
    NormalForm, Number, Span, SpanKind, day_len, is_time, joins, normal_form, number, spans,
    split_line, stands_alone, trailing_digits,
};
pub use word_list::WordList;
