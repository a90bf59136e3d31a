//! The model catalogue and its lookup by name.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ctx_core::{Error, ErrorKind, Result};

use crate::name::{normal, readings};
use crate::{Model, Vintage};

/// Minimum similarity of a suggested name (Jaro-Winkler).
const MIN_SIMILARITY: f64 = 0.8;

/// Maximum number of suggested names.
const OFFERED: usize = 3;

/// A list of models, with an index over the spellings of their names.
#[derive(Clone, Debug)]
pub struct Catalogue {
    models: Vec<Model>,
    today: HashMap<String, usize>,
    seed: HashMap<String, usize>,
}

impl Catalogue {
    /// Returns the catalogue this crate was built with.
    #[must_use]
    pub fn embedded() -> &'static Self {
        static EMBEDDED: LazyLock<Catalogue> = LazyLock::new(|| {
            Catalogue::from_json(include_str!("../data/models.json"))
                .expect("the embedded file is the one the tests of this crate read")
        });
        &EMBEDDED
    }

    /// Reads a catalogue from a JSON array of models. A row is refused if its window is zero, a
    /// price is negative or not a number, or its id is already used within its vintage.
    fn from_json(json: &str) -> Result<Self> {
        let models: Vec<Model> = serde_json::from_str(json).map_err(|error| {
            Error::new(ErrorKind::Corrupt, "the model catalogue cannot be read")
                .with("line", error.line())
                .source(error)
                .hint("it must be a JSON array of models, as in data/models.json of ctx-model")
        })?;
        let mut ids = HashSet::new();
        for model in &models {
            let fault = if model.window.0 == 0 {
                "a model's window is zero"
            } else if !model.prices.is_valid() {
                "a model has a price that is not a non-negative number"
            } else if !ids.insert((model.vintage, normal(&model.id))) {
                "duplicate model id"
            } else {
                continue;
            };
            return Err(Error::new(ErrorKind::Corrupt, fault)
                .with("model", &model.id)
                .hint("correct that row of the catalogue"));
        }
        let today = index(&models, Vintage::Today);
        let seed = index(&models, Vintage::Seed);
        Ok(Self { models, today, seed })
    }

    /// Returns all models, in the order of the file.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Returns the model of this name; a `Today` row takes precedence over a `Seed` row.
    ///
    /// The lookup ignores case, dots versus dashes, the serving provider (`openrouter/...`,
    /// `us.anthropic....`), and a trailing date or `-latest`; but a row for exactly that date takes
    /// precedence.
    pub fn find(&self, name: &str) -> Option<&Model> {
        self.look_up(name, [&self.today, &self.seed])
    }

    /// Like [`find`](Self::find), but the rows of a vintage take precedence. Seed prices are those
    /// of January 2026, without cache prices.
    pub fn find_in(&self, name: &str, vintage: Vintage) -> Option<&Model> {
        match vintage {
            Vintage::Today => self.find(name),
            Vintage::Seed => self.look_up(name, [&self.seed, &self.today]),
        }
    }

    /// Like [`find_in`](Self::find_in), but the error suggests similar names.
    pub fn get(&self, name: &str, vintage: Vintage) -> Result<&Model> {
        self.find_in(name, vintage).ok_or_else(|| {
            let error = Error::new(ErrorKind::NotFound, "unknown model")
                .with("model", ctx_core::text::head_chars(name, 100));
            match self.nearest(name).as_slice() {
                [] => error.hint("use a known model, or set the window explicitly"),
                near => error.hint(format!("did you mean {}?", near.join(", "))),
            }
        })
    }

    /// Returns up to three ids of the models whose names are most similar to `name`, best first;
    /// empty if none is similar.
    pub(crate) fn nearest(&self, name: &str) -> Vec<&str> {
        let wanted = normal(name);
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut scored: Vec<(f64, &str)> = self
            .models
            .iter()
            .map(|model| (similarity(&wanted, &normal(&model.id)), model.id.as_str()))
            .filter(|(score, _)| *score >= MIN_SIMILARITY)
            .collect();
        // A stable sort keeps the file's order among equals: newest first within a provider.
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut offered: Vec<&str> = Vec::with_capacity(OFFERED);
        for (_, id) in scored {
            if offered.len() < OFFERED && !offered.contains(&id) {
                offered.push(id);
            }
        }
        offered
    }

    /// Tries the indexes in order, and in each of them the strictest reading first.
    fn look_up(&self, name: &str, indexes: [&HashMap<String, usize>; 2]) -> Option<&Model> {
        let normal = normal(name);
        let readings = readings(&normal);
        indexes
            .into_iter()
            .find_map(|index| readings.iter().find_map(|reading| index.get(*reading)))
            .and_then(|&at| self.models.get(at))
    }
}

/// Indexes every reading of every id, alias and name of a vintage. Exact names take precedence over
/// loose readings of other rows.
fn index(models: &[Model], vintage: Vintage) -> HashMap<String, usize> {
    let mut index = HashMap::new();
    let mut loose = Vec::new();
    for (at, model) in models.iter().enumerate().filter(|(_, m)| m.vintage == vintage) {
        for name in [&model.id, &model.name].into_iter().chain(&model.aliases) {
            let name = normal(name);
            loose.extend(readings(&name).into_iter().skip(1).map(|r| (r.to_owned(), at)));
            index.entry(name).or_insert(at);
        }
    }
    for (reading, at) in loose {
        index.entry(reading).or_insert(at);
    }
    index
}

/// Returns the similarity from 0 to 1. An id that contains the wanted word scores as high as one
/// with a typo.
fn similarity(wanted: &str, id: &str) -> f64 {
    let alike = strsim::jaro_winkler(wanted, id);
    if wanted.len() >= 3 && id.contains(wanted) { alike.max(0.9) } else { alike }
}

#[cfg(test)]
mod tests {
    use ctx_core::Tokens;

    use super::*;

    fn id(name: &str) -> Option<&'static str> {
        Catalogue::embedded().find(name).map(|m| m.id.as_str())
    }

    #[test]
    fn the_seed_rows_have_the_documented_numbers() {
        let rows: Vec<_> = Catalogue::embedded()
            .models()
            .iter()
            .filter(|m| m.vintage == Vintage::Seed)
            .map(|m| {
                assert_eq!(m.date, "2026-01-30");
                assert_eq!((m.prices.cache_read, m.prices.cache_write), (None, None));
                let usable = m.usable.map_or(0, |t| t.0);
                (m.name.as_str(), m.window.0, usable, m.prices.input, m.prices.output)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("GPT-4o", 128_000, 100_000, 2.5, 10.0),
                ("Claude Opus 4.5", 200_000, 180_000, 15.0, 75.0),
                ("Claude Sonnet 4.5", 200_000, 180_000, 3.0, 15.0),
                ("Gemini 2.0 Flash", 1_000_000, 900_000, 0.075, 0.3),
                ("Claude Haiku 3.5", 200_000, 180_000, 0.8, 4.0),
                ("Qwen 2.5 72B", 128_000, 100_000, 0.4, 0.4),
            ]
        );
    }

    #[test]
    fn every_row_names_its_source_and_can_be_found() {
        let catalogue = Catalogue::embedded();
        assert!(catalogue.models().len() > 80);
        for model in catalogue.models() {
            assert!(!model.source.is_empty() && model.date.len() == 10, "{}", model.id);
            assert!(model.max_output.is_none_or(|t| t <= model.window), "{}", model.id);
            assert!(model.usable.is_none_or(|t| t < model.window), "{}", model.id);
            for name in [&model.id, &model.name].into_iter().chain(&model.aliases) {
                let found = catalogue.find_in(name, model.vintage).unwrap();
                assert_eq!((&found.id, found.vintage), (&model.id, model.vintage), "{name}");
            }
        }
    }

    #[test]
    fn names_are_read_as_people_write_them() {
        assert_eq!(id("claude-opus-4-5-20251101"), Some("claude-opus-4-5"));
        assert_eq!(id("ANTHROPIC/Claude-Opus-4.5"), Some("claude-opus-4-5"));
        assert_eq!(id("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), Some("claude-sonnet-4-5"));
        assert_eq!(id("claude-haiku-4-5-latest"), Some("claude-haiku-4-5"));
        assert_eq!(id("gemini-3-flash"), Some("gemini-3-flash-preview"));
        assert_eq!(id("mistral-large-latest"), Some("mistral-large-2512"));
        assert_eq!(id("mistral-large-2411"), Some("mistral-large-2411"));
        assert_eq!(id("gpt-4o-2024-08-06"), Some("gpt-4o"));
        assert_eq!(id("gpt-4o-2024-05-13"), Some("gpt-4o-2024-05-13"));
        assert_eq!(id("GPT-5.1"), Some("gpt-5.1"));
        assert_eq!(id("claude-3-5-haiku-20241022"), Some("claude-haiku-3-5"));
        assert_eq!(id("openai/gpt-5.1-codex"), Some("gpt-5.1-codex"));
        assert_eq!(id("deepseek/deepseek-v3.2-exp"), Some("deepseek-chat"));
        assert_eq!(id("<synthetic>"), None);
        assert_eq!(id(""), None);
    }

    #[test]
    fn current_model_names_are_known() {
        for name in [
            "gpt-5",
            "gpt-5-codex",
            "gpt-5-mini",
            "gpt-5-pro",
            "gpt-5.1-codex",
            "gpt-5.1-codex-max",
            "gpt-5.1-codex-mini",
            "gpt-5.2-codex",
            "gpt-5.3-codex",
            "gpt-4o",
            "gpt-4.1",
            "o3",
            "o3-pro",
            "o4-mini",
            "claude-opus-4-20250514",
            "claude-opus-4-1-20250805",
            "claude-opus-4-5-20251101",
            "claude-sonnet-4-20250514",
            "claude-sonnet-4-5-20250929",
            "claude-haiku-4-5-20251001",
            "claude-3-5-haiku-20241022",
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "gemini-3-flash-preview",
            "deepseek-chat",
            "deepseek-reasoner",
            "qwen3-coder",
            "kimi-k2",
            "glm-4.6",
        ] {
            let found = Catalogue::embedded().find(name).unwrap_or_else(|| panic!("{name}"));
            assert!(found.window >= Tokens(128_000) && found.prices.output > 0.0, "{name}");
        }
    }

    #[test]
    fn a_beta_window_is_not_assumed() {
        let sonnet = Catalogue::embedded().find("claude-sonnet-4-5").unwrap();
        assert_eq!(sonnet.window, Tokens(200_000));
        assert!(sonnet.source.contains("beta"));
    }

    #[test]
    fn the_vintage_decides_between_rows() {
        let catalogue = Catalogue::embedded();
        let price =
            |vintage| catalogue.find_in("claude-opus-4-5-20251101", vintage).unwrap().prices.input;
        assert_eq!((price(Vintage::Seed), price(Vintage::Today)), (15.0, 5.0));
        let new = catalogue.find_in("claude-opus-5", Vintage::Seed).unwrap();
        assert_eq!(new.vintage, Vintage::Today);
        assert_eq!(catalogue.find("gemini-2.0-flash").unwrap().window, Tokens(1_000_000));
    }

    #[test]
    fn an_unknown_name_brings_similar_ones() {
        let catalogue = Catalogue::embedded();
        assert_eq!(catalogue.nearest("claude-sonet-4.5")[0], "claude-sonnet-4-5");
        assert!(catalogue.nearest("opus").iter().all(|id| id.contains("opus")));
        assert_eq!(catalogue.nearest("opus").len(), 3);
        assert!(catalogue.nearest("zzzz").is_empty());
        let error = catalogue.get("gpt5-mini", Vintage::Today).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.hint_text().unwrap().contains("gpt-5-mini"), "{error:?}");
    }

    #[test]
    fn bad_catalogues_are_refused_with_the_row() {
        let row = |window: u32, input: &str| {
            format!(
                r#"{{"id":"m","name":"M","provider":"p","window":{window},
                "prices":{{"input":{input},"output":1}},"source":"s","date":"2026-01-01","vintage":"today"}}"#
            )
        };
        let refused = |json: String| Catalogue::from_json(&json).unwrap_err().to_string();
        let good = row(1000, "1");
        assert!(Catalogue::from_json(&format!("[{good}]")).is_ok());
        assert!(refused(format!("[{good},{good}]")).contains("duplicate model id (model: m)"));
        assert!(refused(format!("[{}]", row(0, "1"))).contains("window is zero"));
        assert!(refused(format!("[{}]", row(1, "-1"))).contains("price"));
        assert!(refused("[".to_owned()).contains("cannot be read"));
    }
}
