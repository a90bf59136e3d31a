//! Resolves a context window and checks its size.

use ctx_core::Tokens;
use serde::Serialize;

use crate::{Config, ContextWindowSource, FailoverError, WindowSizes};

/// A context window: its size, its source, and whether it is large enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Its size.
    pub tokens: Tokens,
    /// Where the size comes from.
    pub source: ContextWindowSource,
    /// Whether it is small: continue, with a warning.
    pub should_warn: bool,
    /// Whether it is too small: use another model.
    pub should_block: bool,
    /// The smallest accepted window.
    #[serde(skip)]
    pub minimum: Tokens,
    /// The smallest window that causes no warning.
    #[serde(skip)]
    pub warn_below: Tokens,
}

/// Resolves the window and checks it.
///
/// # Notes
///
/// The size is not compared with the model's real window: an `agents.defaults.contextTokens` larger
/// than the model's window is accepted, as in the systems this comes from.
///
/// # Example
///
/// ```
/// use ctx_core::Tokens;
/// use ctx_window_guard::{Config, ContextWindowSource, SourceOrder, WindowSizes, resolve};
///
/// let sizes = WindowSizes {
///     model: Some(Tokens(200_000)),
///     agent_context_tokens: Some(Tokens(32_000)),
///     ..WindowSizes::none()
/// };
/// let window = resolve(&sizes, &Config::default());
/// assert_eq!(window.tokens, Tokens(32_000));
/// assert_eq!(window.source, ContextWindowSource::AgentContextTokens);
/// assert!(window.check().is_ok());
///
/// let config = Config { order: SourceOrder::ModelFirst, ..Config::default() };
/// let window = resolve(&sizes, &config);
/// assert_eq!((window.tokens, window.source.name()), (Tokens(200_000), "model"));
/// ```
#[must_use]
pub fn resolve(sizes: &WindowSizes, config: &Config) -> Window {
    let found = config
        .order
        .sources()
        .into_iter()
        .find_map(|source| sizes.of(source).map(|tokens| (tokens, source)));
    let (tokens, source) = found.unwrap_or((config.default_tokens, ContextWindowSource::Default));
    Window::new(tokens, source, sizes.of(ContextWindowSource::Model), config)
}

impl Window {
    /// Checks a window of known size. `native` is the model's own window, if known; only the
    /// proportional rule uses it.
    #[must_use]
    pub fn new(
        tokens: Tokens,
        source: ContextWindowSource,
        native: Option<Tokens>,
        config: &Config,
    ) -> Self {
        let minimum = config.minimum(tokens, native);
        let warn_below = config.warn_below(tokens, native);
        Self {
            tokens,
            source,
            should_warn: tokens < warn_below,
            should_block: tokens < minimum,
            minimum,
            warn_below,
        }
    }

    /// Rejects a window that is too small.
    ///
    /// # Errors
    ///
    /// [`FailoverError`]: the outer loop uses another model.
    pub fn check(&self) -> Result<(), FailoverError> {
        if !self.should_block {
            return Ok(());
        }
        Err(FailoverError { window: self.tokens, minimum: self.minimum, source: self.source })
    }

    /// Returns the log warning for a small window.
    pub fn warning(&self, provider: &str, model: &str) -> Option<String> {
        let Self { tokens, source, warn_below, .. } = self;
        self.should_warn.then(|| {
            format!(
                "low context window: {provider}/{model} ctx={tokens} (warn<{warn_below}) \
                 source={source}"
            )
        })
    }
}

#[cfg(feature = "register")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::MinimumRule;

    fn all(model: u32, models_config: u32, agent: u32) -> WindowSizes {
        WindowSizes {
            model: Some(Tokens(model)),
            models_config: Some(Tokens(models_config)),
            agent_context_tokens: Some(Tokens(agent)),
        }
    }

    fn found(profile: &str, sizes: WindowSizes) -> (u32, &'static str) {
        let config = ctx_config::Config::for_profile(profile.parse().unwrap());
        let window = resolve(&sizes, &config.section().unwrap());
        (window.tokens.0, window.source.name())
    }

    fn alone(tokens: u32, config: &Config) -> Window {
        resolve(&WindowSizes { model: Some(Tokens(tokens)), ..WindowSizes::none() }, config)
    }

    #[test]
    fn the_agent_setting_comes_first_except_under_ponybunny() {
        for profile in ["openclaw", "copaw", "memory-context", "pi"] {
            assert_eq!(found(profile, all(3, 2, 1)), (1, "agentContextTokens"));
            assert_eq!(found(profile, all(3, 2, 0)), (2, "modelsConfig"));
            assert_eq!(found(profile, all(3, 0, 0)), (3, "model"));
        }
        assert_eq!(found("ponybunny", all(3, 2, 1)), (3, "model"));
        assert_eq!(found("ponybunny", all(0, 2, 1)), (2, "modelsConfig"));
        assert_eq!(found("ponybunny", all(0, 0, 1)), (1, "agentContextTokens"));
    }

    #[test]
    fn defaults_are_those_of_the_profile() {
        for (name, tokens) in [
            ("openclaw", 200_000),
            ("ponybunny", 80_000),
            ("copaw", 131_072),
            ("memory-context", 200_000),
            ("pi", 200_000),
        ] {
            assert_eq!(found(name, WindowSizes::none()), (tokens, "default"), "{name}");
        }
    }

    #[test]
    fn the_fixed_rule_refuses_under_16000_and_warns_under_32000() {
        let verdicts = [0, 1, 15_999, 16_000, 31_999, 32_000].map(|tokens| {
            let window =
                Window::new(Tokens(tokens), ContextWindowSource::Model, None, &Config::default());
            (window.should_warn, window.should_block)
        });
        let (blocked, warned, fine) = ((true, true), (true, false), (false, false));
        assert_eq!(verdicts, [blocked, blocked, blocked, warned, warned, fine]);
    }

    #[test]
    fn the_proportional_rule_never_refuses_a_deliberate_cap_above_4000() {
        let config = Config { rule: MinimumRule::Proportional, ..Config::default() };
        let capped = |agent| {
            let sizes = all(1_000_000, 0, agent);
            let window = resolve(&sizes, &config);
            (window.should_warn, window.should_block, window.minimum.0)
        };
        assert_eq!(capped(3_999), (true, true, 4_000));
        assert_eq!(capped(4_000), (true, false, 4_000));
        assert_eq!(capped(150_000), (true, false, 100_000));
        assert_eq!(capped(200_000), (false, false, 100_000));
        assert!(alone(7_999, &config).should_warn && !alone(8_000, &config).should_warn);
    }

    #[test]
    fn a_refusal_and_a_warning_in_the_guards_words() {
        let refused = alone(8_000, &Config::default()).check().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Model context window too small (8000 tokens; source=model). Minimum is 16000."
        );
        assert_eq!(
            alone(20_000, &Config::default()).warning("local", "tiny").unwrap(),
            "low context window: local/tiny ctx=20000 (warn<32000) source=model"
        );
        assert_eq!(alone(32_000, &Config::default()).warning("local", "tiny"), None);
    }

    #[test]
    fn the_result_has_the_documented_fields() {
        let json = serde_json::to_value(alone(20_000, &Config::default())).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "tokens": 20_000, "source": "model", "shouldWarn": true, "shouldBlock": false,
            })
        );
    }
}
