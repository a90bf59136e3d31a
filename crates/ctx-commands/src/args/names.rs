//! Names for shell completion and help. Unknown names are rejected by the type's own parser or by
//! the command.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use ctx_config::Profile;
use ctx_core::CounterKind;
use ctx_engine_registry::{Registry, Slot};
use ctx_eval::eval::PRESETS;
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

pub(super) fn presets() -> Names {
    Names(|| PRESETS.iter().map(|preset| preset.name).collect())
}

/// Formats that can be written.
pub(super) fn formats() -> Names {
    Names(|| Format::targets().collect())
}
