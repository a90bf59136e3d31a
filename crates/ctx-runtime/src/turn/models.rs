//! Which model of the chain answers.

use ctx_core::{Error, ErrorKind, Result};

use super::Turn;
use crate::runtime::{NoticeKind, layer};

impl Turn<'_> {
    /// Settles the first model whose window is big enough.
    pub(super) async fn settle_first(&mut self) -> Result<()> {
        self.settle_from(0, None).await
    }

    /// Goes on with the next model after one that failed. The error comes back where there is none.
    pub(super) async fn fail_over(&mut self, error: Error) -> Result<()> {
        self.settle_from(self.model + 1, Some(error)).await
    }

    async fn settle_from(&mut self, from: usize, mut error: Option<Error>) -> Result<()> {
        let inner = self.inner();
        let mut failed = from.checked_sub(1);
        for at in from..self.session.own.models.len() {
            let span = tracing::debug_span!("guard", model = self.name(at));
            let settled = Box::pin(self.session.settle(inner, at, self.tools.specs()));
            match tracing::Instrument::instrument(settled, span).await {
                Ok(()) => {
                    self.model = at;
                    if let (Some(failed), Some(error)) = (failed, &error) {
                        inner.counts.did(layer::FAILOVER, "fail");
                        let (name, failed) = (self.name(at), self.name(failed));
                        let words = format!("{name} answers instead of {failed}: {error}");
                        self.say(NoticeKind::Failover, words);
                    }
                    self.say_warnings();
                    return Ok(());
                }
                Err(refused) if refused.kind() == ErrorKind::WindowTooSmall => {
                    inner.counts.did(layer::WINDOW_GUARD, "refuse");
                    // What the first one asked for failed with is what the user should hear of.
                    failed = failed.or(Some(at));
                    error = error.or(Some(refused));
                }
                Err(refused) => return Err(refused),
            }
        }
        Err(error.unwrap_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is no model")
                .hint("give one with Builder::model")
        }))
    }

    fn name(&self, at: usize) -> String {
        self.session.own.models[at].card().name.clone()
    }

    /// Says what setting, engine and layers have to say, each thing once.
    pub(super) fn say_warnings(&mut self) {
        let Some(setting) = &mut self.session.setting else { return };
        let small = setting.resolved.warning();
        let mut warnings = std::mem::take(&mut setting.warnings);
        warnings.extend(setting.engine.take_warnings());
        warnings.extend(setting.memory.warnings());
        for words in warnings {
            let kind = match Some(&words) == small.as_ref() {
                true => NoticeKind::Window,
                false => NoticeKind::Engine,
            };
            self.say(kind, words);
        }
    }
}
