//! `plugins`: which plugins fill the slots, and their settings.

use std::collections::BTreeMap;
use std::time::Duration;

use ctx_config::{ConfigSection, Section, invalid_value};
use ctx_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::EngineSettings;
use crate::name::{EngineName, NAME_RULE};

/// `plugins`: which plugins fill the slots, and their settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Plugins {
    /// The slots.
    pub slots: Slots,
    /// What happens to a turn in which an engine fails: `fallback` (default): the default engine
    /// serves it; `strict`: it is an error.
    pub on_failure: OnFailure,
    /// Engines that are not built in, by id.
    pub engines: BTreeMap<String, EngineConfig>,
}

/// The slots, each filled by one plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Slots {
    /// The engine that assembles requests. An agent or a model may override it: see `contextEngine`
    /// in `agents.list` and in the rows of `models.providers`. Default: `legacy`.
    pub context_engine: String,
    /// Long-term memory, independent of the engine: `memory-context`, or the name of a linked
    /// memory crate, switches it on, unless `agents.defaults.memoryContext.enabled` is false;
    /// `none` switches it off. Default: the value of `agents.defaults.memoryContext.enabled`.
    pub memory: Option<String>,
}

impl Default for Slots {
    fn default() -> Self {
        Self { context_engine: crate::DEFAULT_ENGINE.to_owned(), memory: None }
    }
}

/// The settings of an engine that is not built in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct EngineConfig {
    /// Where a library runs: `process`: in its own process, where it cannot harm the host;
    /// `in-process`: inside the host, which is faster, but a crash ends both. An engine that is a
    /// program always runs in its own process. Only this file can grant trust: no file of a plugin
    /// can. Default: `process`, except in programs other than `ctx` that cannot host a library in a
    /// process.
    pub trust: Option<Trust>,
    /// What happens to a turn in which it fails. Default: `plugins.onFailure`.
    pub on_failure: Option<OnFailure>,
    /// Which side compacts, if the engine requests the lease on compaction: `engine` (default)
    /// grants it, `host` does not.
    pub compaction: CompactionBy,
    /// The id of an engine that runs first, to which this one only adds: `legacy`. Default: as in
    /// its manifest, else none.
    pub base: Option<String>,
    /// How calls are encoded: `msgpack` (default): as MessagePack, if the engine can read it; `json`:
    /// always as JSON.
    pub encoding: EngineEncoding,
    /// Passed to the engine unchanged. When the configuration is printed, texts whose keys look
    /// like those of secrets are hidden; most engines need no secrets, as they reach models through
    /// the host.
    pub config: EngineSettings,
    /// The deadlines of its calls.
    pub deadlines_ms: Deadlines,
    /// The maximum memory of its process, in MiB, where the system can limit it. Default: 1024.
    #[schemars(range(min = 16, max = 1_048_576))]
    pub memory_limit_mb: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            trust: None,
            on_failure: None,
            compaction: CompactionBy::default(),
            base: None,
            encoding: EngineEncoding::default(),
            config: EngineSettings::default(),
            deadlines_ms: Deadlines::default(),
            memory_limit_mb: 1024,
        }
    }
}

/// Where the code of a library runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// In its own process.
    #[default]
    Process,
    /// Inside the host's process.
    InProcess,
}

/// What happens to a turn in which an engine fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// The default engine serves it.
    #[default]
    Fallback,
    /// It is an error.
    Strict,
}

/// Which side compacts, if an engine requests the lease on compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CompactionBy {
    /// The engine, until it fails at it.
    #[default]
    Engine,
    /// Always the default engine.
    Host,
}

/// How the calls of an engine are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineEncoding {
    /// As MessagePack, if the engine can read it.
    #[default]
    Msgpack,
    /// As JSON.
    Json,
}

/// The deadlines of an engine's calls, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Deadlines {
    /// The first call, in which an engine starts. Default: 5000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub hello: u64,
    /// Assembling a request. Default: 10000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub assemble: u64,
    /// Compacting a session, including calls to models. Default: 300000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub compact: u64,
    /// Ingesting new messages. Default: 2000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub ingest: u64,
    /// The last call. Default: 10000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub dispose: u64,
    /// Everything else. Default: 5000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub other: u64,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            hello: 5_000,
            assemble: 10_000,
            compact: 300_000,
            ingest: 2_000,
            dispose: 10_000,
            other: 5_000,
        }
    }
}

impl Deadlines {
    /// Returns the deadline of a verb of the engine protocol, for example `assemble`.
    pub fn of(&self, verb: &str) -> Duration {
        Duration::from_millis(match verb {
            "hello" => self.hello,
            "assemble" => self.assemble,
            "compact" => self.compact,
            "ingest" => self.ingest,
            "dispose" => self.dispose,
            _ => self.other,
        })
    }
}

impl Plugins {
    /// Returns the settings of the engine `id`: from the file, else the defaults.
    pub fn engine(&self, id: &str) -> EngineConfig {
        self.engines.get(id).cloned().unwrap_or_default()
    }

    /// Returns what happens to a turn in which the engine `id` fails.
    pub fn on_failure(&self, id: &str) -> OnFailure {
        self.engines.get(id).and_then(|engine| engine.on_failure).unwrap_or(self.on_failure)
    }
}

impl Section for Plugins {
    const PATH: &'static str = "plugins";
    fn check(&self) -> Result<()> {
        for (id, engine) in &self.engines {
            if EngineName::new(id).is_err() {
                return Err(invalid_value::<Self>("engines", format!("{id:?}"), NAME_RULE));
            }
            if engine.base.as_deref() == Some(id) {
                let key = format!("engines.{id}.base");
                return Err(invalid_value::<Self>(&key, id, "an engine other than itself"));
            }
        }
        Ok(())
    }
}

ctx_config::inventory::submit! { ConfigSection::of::<Plugins>(env!("CARGO_PKG_NAME")) }

#[cfg(test)]
mod tests {
    use ctx_config::Config;
    use ctx_core::ErrorKind;

    use super::*;

    #[test]
    fn an_unknown_key_is_reported_with_a_similar_key() {
        let error = Config::parse("{ plugins: { slots: { contextEngin: 'x' } } }").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = format!("{error} {}", error.hint_text().unwrap_or_default());
        assert!(text.contains("plugins.slots.contextEngin"), "{text}");
        assert!(text.contains("contextEngine"), "{text}");
    }

    #[test]
    fn engine_settings_have_defaults_and_limits() {
        let config = Config::parse(
            "{ plugins: { onFailure: 'strict', engines: {
                a: { trust: 'in-process', onFailure: 'fallback', deadlinesMs: { assemble: 50 },
                     config: { any: [1, { thing: null }] }, compaction: 'host', base: 'legacy' },
                b: {} } } }",
        );
        let plugins: Plugins = config.unwrap().section().unwrap();
        let (a, other) = (plugins.engine("a"), plugins.engine("not-named"));
        assert_eq!((a.trust, a.compaction), (Some(Trust::InProcess), CompactionBy::Host));
        assert_eq!(a.config.expose()["any"][1], serde_json::json!({ "thing": null }));
        assert_eq!(a.deadlines_ms.of("assemble").as_millis(), 50);
        assert_eq!(a.deadlines_ms.of("compact").as_millis(), 300_000);
        assert_eq!(a.deadlines_ms.of("commit_turn").as_millis(), 5_000);
        assert_eq!(
            (plugins.on_failure("a"), plugins.on_failure("b")),
            (OnFailure::Fallback, OnFailure::Strict)
        );
        assert_eq!((other.trust, other.memory_limit_mb), (None, 1024));
        assert_eq!(other, EngineConfig::default());
        for (text, words) in [
            ("engines: { a: { trust: 'yes' } }", "expected process or in-process"),
            ("engines: { a: { trsut: 'process' } }", "unknown key 'plugins.engines.a.trsut'"),
            ("engines: { a: { deadlinesMs: { hello: 0 } } }", "deadlinesMs.hello"),
            ("engines: { a: { encoding: 'cbor' } }", "expected msgpack or json"),
            ("engines: { a: { memoryLimitMb: 1 } }", "memoryLimitMb"),
            ("engines: { a: { base: 'a' } }", "engines.a.base"),
            ("engines: { 'A/b': {} }", "plugins.engines"),
            ("onFailure: 'retry'", "expected fallback or strict"),
            ("slots: { memory: 7 }", "slots.memory"),
            ("slots: { contextEngine: 7 }", "contextEngine': expected text (value: 7)"),
        ] {
            let error = Config::parse(&format!("{{ plugins: {{ {text} }} }}")).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
            assert!(error.hint_text().is_some(), "{error}");
        }
        let error = Config::parse("{ plugins: null }").unwrap_err();
        assert!(error.to_string().contains("expected an object"), "{error}");
        assert!(error.hint_text().is_some());
    }
}
