//! Text analysis: sentences and their classes, code fences, identifiers.

mod courtesy;
mod fnv1a;
mod gist;
mod json;
mod marks;
mod sentences;
mod spoken;
mod step;
mod token;
mod width;

pub(crate) use courtesy::{is_courtesy, is_name};
pub(crate) use fnv1a::fnv1a;
pub(crate) use gist::{Gist, gist};
pub(crate) use json::strings;
pub(crate) use marks::{Marks, approval, marks};
pub(crate) use sentences::{clip, segments, sentences};
pub(crate) use spoken::spoken;
pub(crate) use step::{is_asked_about, is_step};
pub(crate) use token::{
    NormalForm, Token, day_len, is_cjk, normal_form, number, split_line, stands_alone, tokens,
};
pub(crate) use width::{clip_to_width, is_wide, width};
