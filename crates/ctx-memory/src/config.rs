//! `agents.defaults.memoryContext`.

use std::path::Path;

use ctx_core::{Error, ErrorKind, Result, Tokens};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::DailyBudget;
use ctx_search::SearchSettings;

/// What computes vectors of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddingModel {
    /// Hashes of words: no model, no download.
    #[default]
    Hash,
    /// A BERT-type model from a folder on this machine.
    Transformer,
    /// A server's `/embeddings` endpoint.
    Http,
}

/// Where a recall block is inserted in the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Right before the newest user message. Everything before it stays unchanged, earlier blocks
    /// included, so the provider's cached prefix holds. Earlier blocks stay until their history is
    /// compacted.
    #[default]
    BeforeNewest,
    /// After system prompt and summary, one block at a time (OpenClaw's memory extension). It stays while
    /// it has the best passage; each new block breaks the cached prefix at its beginning.
    AfterSummary,
}

/// What is kept of the messages that leave the window, and when it comes back.
///
/// # Notes
///
/// Off by default. Names and numbers are those of OpenClaw's memory extension; settings it does not
/// have are under `recall` and `search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Whether messages are archived, trimmed and recalled. Default: false.
    pub enabled: bool,
    /// The longest recall block, in tokens; at most a twentieth of the window. Default: 4000.
    pub hard_cap_tokens: u32,
    /// What computes vectors. Default: `hash`.
    pub embedding_model: EmbeddingModel,
    /// For `transformer`: the folder with `config.json`, `tokenizer.json` and `model.safetensors`.
    /// For `http`: the model, as `provider/name` of `models.providers`. Default: none.
    pub embedding_source: Option<String>,
    /// For `http`: the number of dimensions of the model's vectors, if ctx does not know the model.
    /// Default: none.
    #[schemars(range(min = 1, max = 65536))]
    pub embedding_dimensions: Option<u32>,
    /// Whether secrets are masked before anything is written. Default: true.
    pub redaction: bool,
    /// Whether facts are extracted from compacted messages. Default: true.
    pub knowledge_extraction: bool,
    /// The daily limit for models that extract facts. Without a model for summaries, rules find
    /// them.
    pub knowledge_budget: DailyBudget,
    /// Passages with a lower score are not recalled: 0 to 1. Default: 0.7.
    #[schemars(range(min = 0, max = 1))]
    pub auto_recall_min_score: f64,
    /// The maximum number of segments; the oldest are evicted. Default: 1000000; 20000 in profile
    /// `memory-context`.
    #[schemars(range(min = 1))]
    pub max_segments: u32,
    /// Whether a session may recall text from another session of the same agent. Default: false.
    pub cross_session: bool,
    /// Segments that have been in the archive for more than this many days are evicted; 0 keeps
    /// them. Default: 0; 90 in profile `memory-context`.
    pub eviction_days: u32,
    /// Whether `ctx mcp` archives the sessions of the other agents on this machine (Claude Code,
    /// Codex, pi, OpenClaw and others) for its tools. They are read, never written. Default: true.
    pub archive_sessions: bool,
    /// Projects whose sessions `ctx mcp` does not archive: folders, including everything below
    /// them. `*` matches a part of a name, `**` any folders, `~` the user's home. Default: none.
    pub exclude_projects: Vec<String>,
    /// Trimming and the recall block.
    pub recall: RecallSettings,
    /// How scores are computed and combined.
    pub search: SearchSettings,
}

/// Trimming and the recall block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RecallSettings {
    /// Where the block is inserted. Default: `before-newest`; `after-summary` in profile
    /// `memory-context`.
    pub placement: Placement,
    /// A request over the limit is trimmed down to this share of the limit without a block, so that
    /// the next ones can grow before the cached prefix breaks again. Default: 0.7; 1 in profile `memory-context`.
    #[schemars(range(min = 0.1, max = 1))]
    pub trim_to: f64,
    /// The number of last messages that are never trimmed. Default: 6 (OpenClaw).
    pub keep_recent: u32,
    /// The maximum number of recalled passages. Default: 20.
    pub passages: u32,
    /// The maximum number of recalled facts. Default: 10 (OpenClaw).
    pub facts: u32,
}

impl Config {
    /// Returns the longest block for a window: `hardCapTokens`, or a twentieth of the window if
    /// that is less.
    pub(crate) fn hard_cap(&self, window: Tokens) -> Tokens {
        Tokens(self.hard_cap_tokens.min(window.0 / 20))
    }

    /// Returns the matcher for [`exclude_projects`](Self::exclude_projects).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`], with the pattern.
    pub fn excluded(&self) -> Result<ExcludedProjects> {
        let home = std::env::home_dir().unwrap_or_default();
        let mut set = GlobSetBuilder::new();
        for pattern in &self.exclude_projects {
            // A pattern also covers everything below the project.
            let named = pattern.trim_end_matches("/**").trim_end_matches('/');
            let full = match named.strip_prefix('~') {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    format!("{}{rest}", globset::escape(&home.to_string_lossy()))
                }
                _ if named.starts_with("**") || Path::new(named).is_absolute() => named.to_owned(),
                _ => return Err(not_a_folder(pattern)),
            };
            let mut glob = GlobBuilder::new(&full);
            set.add(glob.literal_separator(true).build().map_err(|e| not_a_pattern(pattern, &e))?);
        }
        set.build().map(ExcludedProjects).map_err(|e| not_a_pattern("", &e))
    }
}

/// Projects whose sessions are not archived.
#[derive(Clone, Debug, Default)]
pub struct ExcludedProjects(GlobSet);

impl ExcludedProjects {
    /// Whether a project matches, or is below one that does.
    pub fn has(&self, project: &Path) -> bool {
        !self.0.is_empty() && project.ancestors().any(|folder| self.0.is_match(folder))
    }
}

fn not_a_folder(pattern: &str) -> Error {
    Error::new(ErrorKind::Config, format!("invalid folder pattern '{pattern}'"))
        .with("key", "agents.defaults.memoryContext.excludeProjects")
        .hint("begin it with `/`, `~/` or `**/`")
}

fn not_a_pattern(pattern: &str, error: &globset::Error) -> Error {
    Error::new(ErrorKind::Config, format!("invalid folder pattern '{pattern}': {}", error.kind()))
        .with("key", "agents.defaults.memoryContext.excludeProjects")
        .hint("`*` matches a part of a name, `**` any folders")
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: false,
            hard_cap_tokens: 4000,
            embedding_model: EmbeddingModel::Hash,
            embedding_source: None,
            embedding_dimensions: None,
            redaction: true,
            knowledge_extraction: true,
            knowledge_budget: DailyBudget::default(),
            auto_recall_min_score: 0.7,
            max_segments: 1_000_000,
            cross_session: false,
            eviction_days: 0,
            archive_sessions: true,
            exclude_projects: Vec::new(),
            recall: RecallSettings::default(),
            search: SearchSettings::default(),
        }
    }
}

impl Default for RecallSettings {
    fn default() -> Self {
        Self {
            placement: Placement::BeforeNewest,
            trim_to: 0.7,
            keep_recent: 6,
            passages: 20,
            facts: 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excluded_projects_are_folders_with_all_below_them_or_patterns_of_them() {
        let home = std::env::home_dir().unwrap_or_default();
        let patterns = ["/home/me/secret/", "~/clients/*", "/a/**/private", "/all/**"];
        let exclude_projects = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let config = Config { exclude_projects, ..Config::default() };
        let excluded = config.excluded().unwrap();
        for (project, is_out) in [
            ("/home/me/secret".into(), true),
            ("/home/me/secret/deep/er".into(), true),
            ("/home/me/secrets".into(), false),
            ("/work".into(), false),
            (home.join("clients/acme/src"), true),
            (home.join("clients"), false),
            ("/a/b/c/private/d".into(), true),
            ("/all".into(), true),
            ("/all/below".into(), true),
        ] {
            assert_eq!(excluded.has(&project), is_out, "{}", project.display());
        }
        assert!(!Config::default().excluded().unwrap().has(Path::new("/")));
        let wrong = Config { exclude_projects: vec!["/a/[".into()], ..Config::default() };
        let error = wrong.excluded().unwrap_err().to_string();
        assert!(error.contains("'/a/['") && error.contains("excludeProjects"), "{error}");
        // These would exclude nothing.
        for pattern in ["", "  ", "src/cli", "$HOME/src", "~nobody/src", "./a"] {
            let wrong = Config { exclude_projects: vec![pattern.into()], ..Config::default() };
            let error = wrong.excluded().unwrap_err();
            assert!(error.hint_text().unwrap().contains("`~/`"), "{pattern}: {error}");
        }
    }
}
