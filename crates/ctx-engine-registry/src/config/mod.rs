//! `ctx.json5`: strict, and made of the sections that the linked crates bring.

mod sections;
mod strict;

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Profile, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use sections::{
    ContextTokens, ModelConfig, ModelCost, Models, Plugins, ProfileKey, ProviderConfig, Running,
    Slots,
};

/// Deeper nesting than any sensible configuration has; the JSON5 parser recurses.
const MAX_NESTING: usize = 200;

/// A typed part of the configuration.
pub trait Section: Serialize + DeserializeOwned + JsonSchema {
    /// Where it stands, for example `agents.defaults.contextPruning`.
    const PATH: &'static str;
    /// Its values under a profile when the file says nothing.
    fn for_profile(profile: Profile) -> Self;
}

/// A [`Section`] as a linked crate submits it.
#[derive(Clone, Copy)]
pub struct ConfigSection {
    path: &'static str,
    source: &'static str,
    schema: fn() -> Value,
    defaults: fn(Profile) -> Result<Value>,
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
            defaults: defaults_of::<T>,
            check: |config| config.section::<T>().map(drop),
        }
    }
}

inventory::collect!(ConfigSection);

fn schema_of<T: Section>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn defaults_of<T: Section>(profile: Profile) -> Result<Value> {
    serde_json::to_value(T::for_profile(profile)).map_err(|e| {
        Error::new(ErrorKind::Config, "a section's defaults cannot be written as JSON")
            .with("section", T::PATH)
            .source(e)
    })
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

    /// Parses JSON5 text. Unknown keys and values of the wrong type are errors that say where.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn parse(text: &str) -> Result<Self> {
        let nesting = text.bytes().filter(|b| matches!(b, b'{' | b'[')).count();
        if nesting > MAX_NESTING && deepest(text) > MAX_NESTING {
            return Err(Error::new(ErrorKind::Config, "the configuration is nested too deeply")
                .with("most", MAX_NESTING)
                .hint("no key of ctx needs such depth; see `ctx config schema`"));
        }
        let explicit: Value = json5::from_str(text).map_err(|e| {
            Error::new(ErrorKind::Config, format!("the configuration is not valid JSON5: {e}"))
                .hint("it is one object: { profile: \"openclaw\" }")
        })?;
        Self::from_value(explicit)
    }

    /// Takes an already parsed configuration.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn from_value(explicit: Value) -> Result<Self> {
        strict::check(&explicit, &Self::schema())?;
        let profile = match explicit.get("profile") {
            Some(name) => serde_json::from_value(name.clone()).map_err(|_| {
                let known: Vec<_> = Profile::ALL.iter().map(|p| p.name()).collect();
                Error::new(ErrorKind::Config, format!("unknown profile {name}"))
                    .with("known", known.join(", "))
                    .hint("set `profile` to one of the known names, or leave it out")
            })?,
            None => Profile::default(),
        };
        let config = Self { explicit, profile, path: None };
        for section in sections_sorted() {
            (section.check)(&config)?;
        }
        Ok(config)
    }

    /// The same explicit keys over the defaults of another profile.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
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
        serde_path_to_error::deserialize(&value).map_err(|e| {
            let inner = e.path().to_string();
            let key =
                if inner == "." { T::PATH.to_owned() } else { format!("{}.{inner}", T::PATH) };
            Error::new(ErrorKind::Config, format!("wrong value for '{key}': {}", e.inner()))
                .hint("`ctx config schema` prints what each key takes")
        })
    }

    /// Everything in force: each linked section, defaults and explicit keys together.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn effective(&self) -> Result<Value> {
        let mut all = Value::Object(Map::new());
        for section in sections_sorted() {
            let mut value = (section.defaults)(self.profile)?;
            if let Some(explicit) = lookup(&self.explicit, section.path) {
                merge(&mut value, explicit);
            }
            place(&mut all, section.path, value);
        }
        place(&mut all, "profile", Value::String(self.profile.name().to_owned()));
        Ok(all)
    }

    /// The JSON Schema of the whole configuration, as far as its crates are linked.
    #[must_use]
    pub fn schema() -> Value {
        let mut root = strict::object("Configuration of ctx (ctx.json5). Unknown keys are errors.");
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

/// The deepest bracket nesting, strings included: an upper bound that is good enough to protect
/// the parser.
fn deepest(text: &str) -> usize {
    let mut depth = 0usize;
    let mut deepest = 0;
    for b in text.bytes() {
        match b {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_names_itself_and_its_neighbour() {
        let error = Config::parse("{ plugins: { slots: { contextEngin: 'x' } } }").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = format!("{error} {}", error.hint_text().unwrap_or_default());
        assert!(text.contains("plugins.slots.contextEngin"), "{text}");
        assert!(text.contains("contextEngine"), "{text}");
    }

    #[test]
    fn a_wrong_value_names_its_key() {
        let error = Config::parse("{ agents: { running: { memory_compact_ratio: 'x' } } }");
        assert!(error.unwrap_err().to_string().contains("agents.running.memory_compact_ratio"));
    }

    #[test]
    fn nothing_but_an_object_stands_where_sections_are() {
        for text in ["{ agents: 5 }", "{ agents: { defaults: [] } }", "{ plugins: null }"] {
            let error = Config::parse(text).unwrap_err();
            assert!(error.to_string().contains("takes an object"), "{text}: {error}");
        }
    }

    #[test]
    fn explicit_keys_override_the_profile() {
        let config =
            Config::parse("{ profile: 'copaw', agents: { running: { max_input_length: 9000 } } }");
        let running = config.unwrap().section::<Running>().unwrap();
        assert_eq!((running.max_input_length, running.memory_compact_ratio), (9_000, 0.75));
    }

    #[test]
    fn nonsense_is_refused_without_a_crash() {
        for text in ["", "[", "nul", "{ profile: 'best' }", "[1]", "3", &"[".repeat(100_000)] {
            assert_eq!(Config::parse(text).unwrap_err().kind(), ErrorKind::Config, "{text:.20}");
        }
    }
}
