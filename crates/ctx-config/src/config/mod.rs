//! The configuration and its sections.

mod agents;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Profile, document, strict};

pub use agents::{AgentConfig, AgentList};

/// A typed part of the configuration. Its `Default` applies where neither the profile nor the user
/// sets a key.
pub trait Section:
    Clone + Default + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// Its path, for example `agents.defaults.contextPruning`.
    const PATH: &'static str;
    /// Rejects values that have the right type but are invalid, alone or in combination. The
    /// constraints of the schema (ranges, names) are checked before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`], by [`invalid_value`].
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// A [`Section`], as submitted by a linked crate.
#[derive(Clone, Copy)]
pub struct ConfigSection {
    path: &'static str,
    source: &'static str,
    schema: fn() -> Value,
    effective: fn(&Config) -> Result<Value>,
    check: fn(&Config) -> Result<()>,
}

impl ConfigSection {
    /// Registers the section `T` of the crate `source`.
    #[must_use]
    pub const fn of<T: Section>(source: &'static str) -> Self {
        Self {
            path: T::PATH,
            source,
            schema: schema_of::<T>,
            effective: effective::<T>,
            check: |config| config.section::<T>().map(drop),
        }
    }
}

inventory::collect!(ConfigSection);

/// Returns the error of a [`Section`] that rejects a value: the key below the section's path, its
/// value, and what is expected.
///
/// # Example
///
/// ```
/// use ctx_config::{RunningConfig, invalid_value};
///
/// let error = invalid_value::<RunningConfig>("max_input_length", 0, "a whole number of 1 or more");
/// assert_eq!(
///     error.to_string(),
///     "invalid value for 'agents.running.max_input_length': expected a whole number of 1 or more \
///      (value: 0)"
/// );
/// ```
#[must_use]
pub fn invalid_value<T: Section>(key: &str, value: impl Display, expected: &str) -> Error {
    let key = strict::below(T::PATH, key);
    Error::new(ErrorKind::Config, format!("invalid value for '{key}': expected {expected}"))
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
        // The name of a Rust type means nothing to the author of a configuration file.
        schema.remove("title");
        if let Some(Value::String(description)) = schema.get_mut("description") {
            *description = without_rust(description);
        }
    }
    schema
}

/// Removes the Rust example from a section's doc comment, for readers of the schema.
fn without_rust(doc: &str) -> String {
    doc.split("\n\n# Example").next().unwrap_or_default().replace("# Notes\n\n", "")
}

fn as_json<T: Section>(section: &T) -> Result<Value> {
    serde_json::to_value(section).map_err(|e| {
        Error::new(ErrorKind::Config, "a section cannot be written as JSON")
            .with("section", T::PATH)
            .source(e)
    })
}

/// Serializes a section through its type, which hides secrets.
fn effective<T: Section>(config: &Config) -> Result<Value> {
    as_json::<T>(&config.section()?)
}

/// A configuration: the values of the profile, overridden by the values of the file.
#[derive(Clone, Debug, Default)]
pub struct Config {
    explicit: Value,
    profile: Profile,
    /// Whether the profile was set for this run: agents then cannot override it.
    is_profile_given: bool,
    path: Option<PathBuf>,
    read: ReadSections,
}

/// The sections read so far, by type. Copies of a configuration with the same values share them.
#[derive(Clone, Debug, Default)]
struct ReadSections(Arc<Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>>);

impl ReadSections {
    fn get<T: Section>(&self) -> Option<T> {
        let read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        read.get(&TypeId::of::<T>())?.downcast_ref().cloned()
    }

    fn add<T: Section>(&self, section: T) {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(TypeId::of::<T>(), Box::new(section));
    }
}

impl Config {
    /// Returns the defaults of a profile, without explicit values.
    #[must_use]
    pub fn for_profile(profile: Profile) -> Self {
        Self { explicit: Value::Object(Map::new()), profile, ..Self::default() }
    }

    /// Reads a file. A missing file is an error; if the file is optional, check that it exists.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`], or as [`Config::parse`].
    pub fn read(path: &Path) -> Result<Self> {
        let text = ctx_disk::read_to_string(path).map_err(|e| {
            Error::new(ErrorKind::Io, "the configuration cannot be read")
                .with("path", path.display())
                .hint("check that the file exists and is readable")
                .source(e)
        })?;
        let mut config = Self::parse(&text).map_err(|e| e.with("path", path.display()))?;
        config.path = Some(path.to_owned());
        Ok(config)
    }

    /// Parses JSON5 text. Unknown keys, duplicate keys, values of the wrong type and invalid values
    /// are errors that name their position. A text that contains only comments gives the defaults.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn parse(text: &str) -> Result<Self> {
        Self::from_value(document::parse(text)?)
    }

    /// Returns all errors of a text; [`parse`](Self::parse) returns the first.
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

    /// Returns the configuration, or all of its errors: at least one.
    fn checked(explicit: Value) -> std::result::Result<Self, Vec<Error>> {
        let mut faults = strict::faults(&explicit, &Self::schema());
        let named = |name: &Value| name.as_str().and_then(Profile::find);
        let profile = match explicit.get("profile").map(|name| (name, named(name))) {
            Some((_, Some(profile))) => profile,
            Some((name, None)) if faults.iter().all(|(path, _)| path != "profile") => {
                let known: Vec<_> = Profile::all().map(Profile::name).collect();
                let unknown = format!("unknown profile {}", strict::shown(name));
                let error = Error::new(ErrorKind::Config, unknown).with("known", known.join(", "));
                let hint = "set `profile` to one of the known names, or remove it";
                faults.push(("profile".to_owned(), error.hint(hint)));
                Profile::default()
            }
            _ => Profile::default(),
        };
        let config = Self { explicit, profile, ..Self::default() };
        for section in sections_sorted() {
            // A value that does not match the schema cannot be read as a section.
            if faults.iter().all(|(path, _)| !path.starts_with(section.path))
                && let Err(error) = (section.check)(&config)
            {
                faults.push((section.path.to_owned(), error));
            }
        }
        if faults.is_empty() {
            faults = config.faults_of_agents();
        }
        match faults.is_empty() {
            true => Ok(config),
            false => Err(faults.into_iter().map(|(_, error)| error).collect()),
        }
    }

    /// Returns the same explicit values over the defaults of another profile, for all agents.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        Self { profile, is_profile_given: true, read: ReadSections::default(), ..self }
    }

    /// Returns the same explicit values over the defaults of the profile `proxy`, unless they name
    /// another.
    #[must_use]
    pub fn for_proxy(self) -> Self {
        match Profile::find("proxy").filter(|_| !self.is_explicit("profile")) {
            Some(profile) => Self { profile, read: ReadSections::default(), ..self },
            None => self,
        }
    }

    /// Returns this configuration, overridden by the values of another one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`], as for a file with all of these keys.
    pub fn overlaid(self, over: Value) -> Result<Self> {
        // `over` must be valid by itself: after the merge, its values could hide errors in it.
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
        let (path, is_profile_given) = (self.path, self.is_profile_given);
        let read = ReadSections::default();
        Ok(Self { profile, path, is_profile_given, read, ..Self::from_value(explicit)? })
    }

    /// Returns the profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the path of the file it was read from.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the values set by the file itself.
    pub fn explicit(&self) -> &Value {
        &self.explicit
    }

    /// Whether the file itself sets the key at a dotted path.
    pub fn is_explicit(&self, path: &str) -> bool {
        lookup(&self.explicit, path).is_some()
    }

    /// Whether the profile or the file sets the key at a dotted path.
    pub fn is_set(&self, path: &str) -> bool {
        lookup(self.profile.values(), path).is_some() || self.is_explicit(path)
    }

    /// Returns a section: its defaults, overridden by the profile's values, then by the file's.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`], with the key and what is wrong with its value.
    pub fn section<T: Section>(&self) -> Result<T> {
        if let Some(section) = self.read.get() {
            return Ok(section);
        }
        let mut value = as_json(&T::default())?;
        for set in [self.profile.values(), &self.explicit] {
            if let Some(set) = lookup(set, T::PATH) {
                merge(&mut value, set);
            }
        }
        let section: T = serde_path_to_error::deserialize(&value).map_err(|e| {
            let inner = e.path().to_string();
            let key =
                if inner == "." { T::PATH.to_owned() } else { format!("{}.{inner}", T::PATH) };
            Error::new(ErrorKind::Config, format!("invalid value for '{key}': {}", e.inner()))
                .hint(strict::SEE_SCHEMA)
        })?;
        section.check()?;
        self.read.add(section.clone());
        Ok(section)
    }

    /// Returns the effective values of each linked section: defaults and explicit values together.
    /// Secrets are hidden, but references to secrets are not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn effective(&self) -> Result<Value> {
        let mut all = Value::Object(Map::new());
        for section in sections_sorted() {
            let value = (section.effective)(self)?;
            place(&mut all, section.path, value);
        }
        place(&mut all, "profile", Value::String(self.profile.name().to_owned()));
        Ok(all)
    }

    /// Returns the JSON Schema of the whole configuration, for the linked crates.
    #[must_use]
    pub fn schema() -> Value {
        let mut root = strict::object();
        root["description"] = "Configuration of ctx (ctx.json5). Unknown keys are errors.".into();
        root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        for section in sections_sorted() {
            strict::place(&mut root, section.path, (section.schema)());
        }
        agents::extend(&mut root);
        root
    }

    /// Returns the linked sections: path and source crate of each.
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

/// Returns the value at a dotted path.
fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// Sets the value at a dotted path, creating objects as needed.
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

/// Merges `over` into `base`: objects key by key, other values as a whole.
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
