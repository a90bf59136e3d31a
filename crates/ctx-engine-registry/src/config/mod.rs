//! `ctx.json5`: strict, and made of the sections that the linked crates bring.

mod agents;
mod conversation;
mod document;
mod expected;
mod plugins;
mod sections;
mod settings;
mod strict;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Profile, Result};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use agents::{AgentConfig, AgentList};
pub use conversation::ConversationModels;
pub use plugins::{CompactionBy, Deadlines, EngineConfig, OnFailure, Plugins, Slots, Trust};
pub use sections::{
    ContextTokens, ModelConfig, ModelCost, Models, PriceList, ProfileKey, ProviderConfig, Running,
    SecretText,
};
pub use settings::EngineSettings;
pub(crate) use strict::nearest;

/// A typed part of the configuration.
pub trait Section: Serialize + DeserializeOwned + JsonSchema {
    /// Where it stands, for example `agents.defaults.contextPruning`.
    const PATH: &'static str;
    /// Its values under a profile when the file says nothing.
    fn for_profile(profile: Profile) -> Self;
    /// Refuses values that are of the right type but make no sense, alone or together. What the
    /// schema says (ranges, names) is checked before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`], by [`wrong_value`].
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// A [`Section`] as a linked crate submits it.
#[derive(Clone, Copy)]
pub struct ConfigSection {
    path: &'static str,
    source: &'static str,
    schema: fn() -> Value,
    in_force: fn(&Config) -> Result<Value>,
    check: fn(&Config) -> Result<()>,
}

impl ConfigSection {
    /// The section `T` of the crate `source`.
    #[must_use]
    pub const fn of<T: Section>(source: &'static str) -> Self {
        Self {
            path: T::PATH,
            source,
            schema: schema_of::<T>,
            in_force: in_force::<T>,
            check: |config| config.section::<T>().map(drop),
        }
    }
}

inventory::collect!(ConfigSection);

/// The error of a [`Section`] that refuses a value: the key below the section's path, its value,
/// and what stands there in a sound configuration.
///
/// # Example
///
/// ```
/// use ctx_engine_registry::{Running, wrong_value};
///
/// let error = wrong_value::<Running>("max_input_length", 0, "a whole number of 1 or more");
/// assert_eq!(
///     error.to_string(),
///     "wrong value for 'agents.running.max_input_length': expected a whole number of 1 or more \
///      (value: 0)"
/// );
/// ```
#[must_use]
pub fn wrong_value<T: Section>(key: &str, value: impl Display, expected: &str) -> Error {
    let key = strict::below(T::PATH, key);
    Error::new(ErrorKind::Config, format!("wrong value for '{key}': expected {expected}"))
        .with("value", value)
        .hint(strict::SEE_SCHEMA)
}

fn schema_of<T: Section>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        // The name of a Rust type says nothing to the author of a configuration.
        schema.remove("title");
        if let Some(Value::String(description)) = schema.get_mut("description") {
            *description = without_rust(description);
        }
    }
    schema
}

/// A section's doc comment as the author of a configuration reads it: its example is Rust.
fn without_rust(doc: &str) -> String {
    doc.split("\n\n# Example").next().unwrap_or_default().replace("# Notes\n\n", "")
}

fn defaults_of<T: Section>(profile: Profile) -> Result<Value> {
    as_json(&T::for_profile(profile))
}

fn as_json<T: Section>(section: &T) -> Result<Value> {
    serde_json::to_value(section).map_err(|e| {
        Error::new(ErrorKind::Config, "a section cannot be written as JSON")
            .with("section", T::PATH)
            .source(e)
    })
}

/// A section as it is shown: through its type, which hides what is secret in it.
fn in_force<T: Section>(config: &Config) -> Result<Value> {
    as_json::<T>(&config.section()?)
}

/// A configuration: what the file says, over the defaults of its profile.
#[derive(Clone, Debug, Default)]
pub struct Config {
    explicit: Value,
    profile: Profile,
    path: Option<PathBuf>,
}

impl Config {
    /// The defaults of a profile, with nothing explicit.
    #[must_use]
    pub fn for_profile(profile: Profile) -> Self {
        Self { explicit: Value::Object(Map::new()), profile, path: None }
    }

    /// Reads a file. A missing file is an error; a host that may have none asks first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`], or as [`Config::parse`].
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Error::new(ErrorKind::Io, "the configuration cannot be read")
                .with("path", path.display())
                .hint("check that the file is there and that you may read it")
                .source(e)
        })?;
        let mut config = Self::parse(&text).map_err(|e| e.with("path", path.display()))?;
        config.path = Some(path.to_owned());
        Ok(config)
    }

    /// Parses JSON5 text. Unknown keys, keys that stand twice, values of the wrong type and values
    /// that make no sense are errors that say where. A text of nothing but comments is the defaults.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn parse(text: &str) -> Result<Self> {
        Self::from_value(document::parse(text)?)
    }

    /// Everything that is wrong with a text, where [`parse`](Self::parse) says what is wrong first.
    #[must_use]
    pub fn faults(text: &str) -> Vec<Error> {
        match document::parse(text) {
            Ok(explicit) => Self::checked(explicit).err().unwrap_or_default(),
            Err(error) => vec![error],
        }
    }

    /// Takes an already parsed configuration.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn from_value(explicit: Value) -> Result<Self> {
        Self::checked(explicit).map_err(|mut faults| {
            let all = faults.len();
            let first = faults.swap_remove(0);
            if all == 1 {
                return first;
            }
            let hint = first.hint_text().unwrap_or_default().to_owned();
            first.hint(format!("{hint}; `ctx config check` shows all {all} errors"))
        })
    }

    /// The configuration, or everything that is wrong with it: at least one error.
    fn checked(explicit: Value) -> std::result::Result<Self, Vec<Error>> {
        let mut faults = strict::faults(&explicit, &Self::schema());
        let profile = match explicit.get("profile").map(|name| (name, Profile::deserialize(name))) {
            Some((_, Ok(profile))) => profile,
            Some((name, Err(_))) if faults.iter().all(|(path, _)| path != "profile") => {
                let known: Vec<_> = Profile::ALL.iter().map(|p| p.name()).collect();
                let unknown = format!("unknown profile {}", strict::shown(name));
                let error = Error::new(ErrorKind::Config, unknown).with("known", known.join(", "));
                let hint = "set `profile` to one of the known names, or leave it out";
                faults.push(("profile".to_owned(), error.hint(hint)));
                Profile::default()
            }
            _ => Profile::default(),
        };
        let config = Self { explicit, profile, path: None };
        for section in sections_sorted() {
            // What does not fit the schema cannot be read as a section.
            if faults.iter().all(|(path, _)| !path.starts_with(section.path))
                && let Err(error) = (section.check)(&config)
            {
                faults.push((section.path.to_owned(), error));
            }
        }
        match faults.is_empty() {
            true => Ok(config),
            false => Err(faults.into_iter().map(|(_, error)| error).collect()),
        }
    }

    /// The same explicit keys over the defaults of another profile.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The same with the keys of another configuration over it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`], as for a file with all of these keys.
    pub fn overlaid(self, over: Value) -> Result<Self> {
        // Alone it must be sound as well: else a wrong value in it may hide a right one.
        let over = Self::from_value(over)?;
        let profile = match over.explicit.get("profile") {
            Some(_) => over.profile,
            None => self.profile,
        };
        let mut explicit = match self.explicit {
            Value::Null => Value::Object(Map::new()),
            explicit => explicit,
        };
        merge(&mut explicit, &over.explicit);
        let both = Self::from_value(explicit)?.with_profile(profile);
        Ok(Self { path: self.path, ..both })
    }

    /// The profile.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The file it was read from.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// What the file itself says.
    #[must_use]
    pub fn explicit(&self) -> &Value {
        &self.explicit
    }

    /// Whether the file itself sets the key at a dotted path.
    #[must_use]
    pub fn is_explicit(&self, path: &str) -> bool {
        lookup(&self.explicit, path).is_some()
    }

    /// A section: the profile's values, overridden by the file's.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`], naming the key and what is wrong with its value.
    pub fn section<T: Section>(&self) -> Result<T> {
        let mut value = defaults_of::<T>(self.profile)?;
        if let Some(explicit) = lookup(&self.explicit, T::PATH) {
            merge(&mut value, explicit);
        }
        let section: T = serde_path_to_error::deserialize(&value).map_err(|e| {
            let inner = e.path().to_string();
            let key =
                if inner == "." { T::PATH.to_owned() } else { format!("{}.{inner}", T::PATH) };
            Error::new(ErrorKind::Config, format!("wrong value for '{key}': {}", e.inner()))
                .hint(strict::SEE_SCHEMA)
        })?;
        section.check()?;
        Ok(section)
    }

    /// Everything in force: each linked section, defaults and explicit keys together. Secrets are
    /// hidden; where they come from is not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn effective(&self) -> Result<Value> {
        let mut all = Value::Object(Map::new());
        for section in sections_sorted() {
            let value = (section.in_force)(self)?;
            place(&mut all, section.path, value);
        }
        place(&mut all, "profile", Value::String(self.profile.name().to_owned()));
        Ok(all)
    }

    /// The JSON Schema of the whole configuration, as far as its crates are linked.
    #[must_use]
    pub fn schema() -> Value {
        let mut root = strict::object();
        root["description"] = "Configuration of ctx (ctx.json5). Unknown keys are errors.".into();
        root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        for section in sections_sorted() {
            strict::place(&mut root, section.path, (section.schema)());
        }
        root
    }

    /// The linked sections: path and the crate that brings each.
    #[must_use]
    pub fn sections() -> Vec<(&'static str, &'static str)> {
        sections_sorted().into_iter().map(|s| (s.path, s.source)).collect()
    }
}

fn sections_sorted() -> Vec<&'static ConfigSection> {
    let mut sections: Vec<_> = inventory::iter::<ConfigSection>.into_iter().collect();
    sections.sort_by_key(|s| s.path);
    sections
}

/// The value at a dotted path.
fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// Puts a value at a dotted path, making objects on the way.
fn place(root: &mut Value, path: &str, value: Value) {
    let mut at = root;
    for key in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[key];
    }
    *at = value;
}

/// Lays `over` on top of `base`: objects key by key, everything else whole.
fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

#[cfg(test)]
mod tests;
