//! The guard as a layer.

use ctx_core::{ContextView, Layer, Prepared, Result, Tokens, TurnContext};

use crate::{Config, ContextWindowSource, Window};

/// Refuses to assemble a request for a window that is too small.
///
/// # Notes
///
/// The layer edits nothing. It is a second line: an outer loop that knows several models asks
/// [`resolve`](crate::resolve) first and takes a larger one, so that the layer never speaks.
///
/// The window is the ledger's. Who stated it is not in the ledger: tell it by
/// [`WindowGuard::with_source`], or the refusal says `default`.
///
/// # Example
///
/// ```
/// use ctx_core::{ContextView, Counter, ErrorKind, Layer, SequentialIds, Timestamp, TokenLedger,
///     Tokens, TurnContext};
/// use ctx_window_guard::{Config, ContextWindowSource, WindowGuard};
///
/// let guard = WindowGuard::new(Config::default()).with_source(ContextWindowSource::Model);
/// let turn = TurnContext {
///     now: Timestamp(0),
///     last_request: None,
///     ids: std::sync::Arc::new(SequentialIds::default()),
///     profile: Default::default(),
/// };
/// let mut small = ContextView::new(TokenLedger::new(Counter::default(), Tokens(8_000), Tokens(0)));
/// let error = guard.apply(&mut small, None, &turn).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::WindowTooSmall);
/// ```
#[derive(Clone, Debug)]
pub struct WindowGuard {
    config: Config,
    source: ContextWindowSource,
    native: Option<Tokens>,
}

impl WindowGuard {
    /// The layer's name.
    pub const ID: &'static str = "window-guard";

    /// A guard with the given settings, for a window that nobody stated.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, source: ContextWindowSource::Default, native: None }
    }

    /// Sets who stated the window.
    #[must_use]
    pub fn with_source(mut self, source: ContextWindowSource) -> Self {
        self.source = source;
        self
    }

    /// Sets the model's native window, which the proportional rule takes its shares of.
    #[must_use]
    pub fn with_native_window(mut self, tokens: Tokens) -> Self {
        self.native = Some(tokens);
        self
    }

    /// Judges a window.
    #[must_use]
    pub fn judge(&self, tokens: Tokens) -> Window {
        Window::judge(tokens, self.source, self.native, &self.config)
    }
}

impl Layer for WindowGuard {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, _: &TurnContext) -> Result<()> {
        Ok(self.judge(view.ledger().window()).check()?)
    }
}
