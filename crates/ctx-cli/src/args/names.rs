//! Names for shell completion and help. Unknown names are rejected by the type's own parser or by
//! the command.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use ctx_config::Profile;
use ctx_core::{CounterKind, Error, Tokens, amount};
use ctx_engine_registry::{Registry, Slot};
use ctx_eval::eval::{PRESETS, Preset};
use ctx_model::Catalogue;
use ctx_session::Format;

/// A parser that accepts any text, and suggests names.
#[derive(Clone)]
pub(super) struct Names(fn() -> Vec<&'static str>);

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// Parses a value by the rules of its type.
pub(super) fn parsed<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: Error| error.told())
}

/// Parses `32000`, `32_000`, `32k`, `1M`.
pub(super) fn tokens(text: &str) -> Result<Tokens, String> {
    let plain = text.replace(['_', ','], "");
    let tokens = amount::parse(&plain, &[("k", 1_000), ("m", 1_000_000)], 1);
    tokens.and_then(|tokens| u32::try_from(tokens).ok()).map(Tokens).ok_or_else(|| {
        format!("invalid number of tokens '{text}'; give a number such as 32000, 128k or 1M")
    })
}

/// A parser of a number in a range.
pub(super) fn within(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("give a number from {} to {}", range.start(), range.end()))
    }
}

/// A parser of one of these names.
pub(super) fn one_of<T: Copy + Send + Sync>(
    all: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|(name, _)| *name)).map(|name| {
        let known = all.iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| *value).expect("the parser accepts only these names")
    })
}

pub(super) fn profiles() -> impl TypedValueParser<Value = Profile> {
    Names(|| Profile::all().map(Profile::name).collect()).try_map(|name| name.parse())
}

pub(super) fn counters() -> impl TypedValueParser<Value = CounterKind> {
    Names(|| CounterKind::ALL.iter().map(|kind| kind.name()).collect()).try_map(|name| name.parse())
}

/// Built-in engines; others may be installed.
pub(super) fn engines() -> Names {
    Names(|| {
        Registry::collect()
            .map(|registry| {
                let engines = registry.engines().filter(|one| one.slot == Slot::ContextEngine);
                engines.map(|engine| engine.id).collect()
            })
            .unwrap_or_default()
    })
}

pub(super) fn models() -> Names {
    Names(|| Catalogue::embedded().models().iter().map(|model| model.id.as_str()).collect())
}

pub(super) fn presets() -> impl TypedValueParser<Value = Preset> {
    Names(|| PRESETS.iter().map(|preset| preset.name).collect())
        .try_map(|name| Preset::find(&name).map_err(|error| error.told()))
}

/// Formats that can be written.
pub(super) fn formats() -> impl TypedValueParser<Value = Format> {
    Names(|| Format::targets().collect()).try_map(|name| parsed(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_numbers_with_a_unit() {
        let sizes = ["32000", "32_000", "32k", "128K", "1.5k", "1M"].map(|t| tokens(t).unwrap().0);
        assert_eq!(sizes, [32_000, 32_000, 32_000, 128_000, 1_500, 1_000_000]);
        for text in ["", "k", "-1", "9223372036854775808", "many", "18446744073709551615M"] {
            assert!(tokens(text).unwrap_err().contains(text), "{text}");
        }
    }
}
