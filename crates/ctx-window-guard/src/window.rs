//! Resolving a window, and judging it.

use ctx_core::Tokens;
use serde::Serialize;

use crate::{Candidates, Config, ContextWindowSource, FailoverError};

/// A window: how large, who says so, and whether it is large enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Its size.
    pub tokens: Tokens,
    /// Who says so.
    pub source: ContextWindowSource,
    /// It is small: go on, and say so.
    pub should_warn: bool,
    /// It is too small: take another model.
    pub should_block: bool,
    /// The smallest window that is not refused.
    #[serde(skip)]
    pub minimum: Tokens,
    /// The smallest window that is not warned of.
    #[serde(skip)]
    pub warn_below: Tokens,
}

/// Finds the window and judges it.
///
/// # Notes
///
/// Nothing is checked against the model's real window: an `agents.defaults.contextTokens` that
/// promises more than the model has is taken at its word, as in the systems this comes from.
///
/// # Example
///
/// ```
/// use ctx_core::{Profile, Tokens};
/// use ctx_window_guard::{Candidates, Config, ContextWindowSource, resolve};
///
/// let said = Candidates {
///     agent_context_tokens: Some(Tokens(32_000)),
///     ..Candidates::none().with_model(Tokens(200_000))
/// };
///
/// let window = resolve(&said, &Config::for_profile(Profile::Openclaw));
/// assert_eq!(window.tokens, Tokens(32_000));
/// assert_eq!(window.source, ContextWindowSource::AgentContextTokens);
/// assert!(window.check().is_ok());
///
/// let window = resolve(&said, &Config::for_profile(Profile::Ponybunny));
/// assert_eq!((window.tokens, window.source.name()), (Tokens(200_000), "model"));
/// ```
#[must_use]
pub fn resolve(candidates: &Candidates, config: &Config) -> Window {
    let said = config
        .order
        .sources()
        .into_iter()
        .find_map(|source| candidates.of(source).map(|tokens| (tokens, source)));
    let (tokens, source) = said.unwrap_or((config.default_tokens, ContextWindowSource::Default));
    Window::judge(tokens, source, candidates.of(ContextWindowSource::Model), config)
}

impl Window {
    /// Judges a window whose size is already settled. `native` is the model's own window, where it
    /// is known; only the proportional rule looks at it.
    #[must_use]
    pub fn judge(
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

    /// Refuses a window that is too small.
    ///
    /// # Errors
    ///
    /// [`FailoverError`]: the outer loop takes another model.
    pub fn check(&self) -> Result<(), FailoverError> {
        if !self.should_block {
            return Ok(());
        }
        Err(FailoverError { window: self.tokens, minimum: self.minimum, source: self.source })
    }

    /// What to log about a small window, if it is one.
    #[must_use]
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

#[cfg(test)]
mod tests {
    use ctx_core::Profile;

    use super::*;
    use crate::Rule;

    fn all(model: u32, models_config: u32, agent: u32) -> Candidates {
        Candidates {
            model: Some(Tokens(model)),
            models_config: Some(Tokens(models_config)),
            agent_context_tokens: Some(Tokens(agent)),
        }
    }

    fn found(profile: Profile, candidates: Candidates) -> (u32, &'static str) {
        let window = resolve(&candidates, &Config::for_profile(profile));
        (window.tokens.0, window.source.name())
    }

    fn alone(tokens: u32, config: &Config) -> Window {
        resolve(&Candidates::none().with_model(Tokens(tokens)), config)
    }

    #[test]
    fn the_agent_comes_first_but_for_ponybunny() {
        for profile in Profile::ALL.into_iter().filter(|p| *p != Profile::Ponybunny) {
            assert_eq!(found(profile, all(3, 2, 1)), (1, "agentContextTokens"));
            assert_eq!(found(profile, all(3, 2, 0)), (2, "modelsConfig"));
            assert_eq!(found(profile, all(3, 0, 0)), (3, "model"));
        }
        assert_eq!(found(Profile::Ponybunny, all(3, 2, 1)), (3, "model"));
        assert_eq!(found(Profile::Ponybunny, all(0, 2, 1)), (2, "modelsConfig"));
        assert_eq!(found(Profile::Ponybunny, all(0, 0, 1)), (1, "agentContextTokens"));
    }

    #[test]
    fn defaults_are_those_of_the_profile() {
        let defaults = Profile::ALL.map(|p| found(p, Candidates::none()));
        assert_eq!(
            defaults.map(|(tokens, _)| tokens),
            [200_000, 80_000, 131_072, 200_000, 200_000]
        );
        assert!(defaults.iter().all(|(_, source)| *source == "default"));
    }

    #[test]
    fn the_fixed_rule_refuses_under_16000_and_warns_under_32000() {
        let verdicts = [0, 1, 15_999, 16_000, 31_999, 32_000].map(|tokens| {
            let window =
                Window::judge(Tokens(tokens), ContextWindowSource::Model, None, &Config::default());
            (window.should_warn, window.should_block)
        });
        let (blocked, warned, fine) = ((true, true), (true, false), (false, false));
        assert_eq!(verdicts, [blocked, blocked, blocked, warned, warned, fine]);
    }

    #[test]
    fn the_proportional_rule_never_refuses_a_deliberate_cap_above_4000() {
        let config = Config { rule: Rule::Proportional, ..Config::default() };
        let capped = |agent| {
            let said = all(1_000_000, 0, agent);
            let window = resolve(&said, &config);
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
    fn the_result_has_the_seeds_fields() {
        let json = serde_json::to_value(alone(20_000, &Config::default())).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "tokens": 20_000, "source": "model", "shouldWarn": true, "shouldBlock": false,
            })
        );
    }
}
