//! The engines that `ctx eval` and `ctx eval compact` compare, and the data of a session for both.

use std::path::Path;

use ctx_config::Profile;
use ctx_core::Counter;
use ctx_eval::eval::{COMPACT_TO, EngineArm, EvalSetup, PRESETS, Preset, RowKind};
use ctx_eval::{Baseline, SessionReport};
use ctx_runtime::Stores;
use ctx_session::Transcript;
use ctx_terminal::failure::misuse;
use ctx_terminal::out::Out;

use crate::args::{Fit, Global, Summaries};
use crate::setup::{self, Fitted};

/// A session, and the flags that fit it.
pub(super) struct Fitter<'a> {
    pub(super) global: &'a Global,
    pub(super) window: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    pub(super) path: &'a Path,
    pub(super) transcript: &'a Transcript,
}

impl Fitter<'_> {
    /// Builds an engine under a profile. Unless `writer` names one, no model writes summaries, so
    /// that the result is always the same.
    pub(super) fn fit(
        &self,
        profile: Option<Profile>,
        engine: Option<&String>,
        writer: Option<&str>,
        out: &Out,
    ) -> anyhow::Result<Fitted> {
        self.build(&Fit { engine: engine.cloned(), profile, ..self.flags() }, writer, out)
    }

    fn flags(&self) -> Fit {
        let (window, model) = (self.window.map(str::to_owned), self.model.map(str::to_owned));
        Fit { window, model, ..Fit::default() }
    }

    fn build(&self, fit: &Fit, writer: Option<&str>, out: &Out) -> anyhow::Result<Fitted> {
        let summaries = Summaries { summary_model: Some(writer.unwrap_or("none").to_owned()) };
        let (global, path) = (self.global, self.path);
        setup::fit(global, (fit, &summaries), path, self.transcript, Stores::discarding(), out)
    }

    /// Builds the default engine under each profile, also `with_memory`, then each engine under the
    /// configured one.
    pub(super) fn engines(
        &self,
        profiles: &[Profile],
        engines: &[String],
        with_memory: bool,
    ) -> anyhow::Result<Vec<EngineArm>> {
        // One warning about a small window is enough for all candidates.
        let quiet = Out::silent();
        let profiles = match profiles {
            [] => Profile::all().collect(),
            given => given.to_vec(),
        };
        let mut arms = Vec::new();
        for profile in profiles {
            let fit = Fit { profile: Some(profile), ..self.flags() };
            let fitted = self.build(&fit, None, &quiet)?;
            arms.push(engine_arm(profile.name(), RowKind::Profile, fitted));
            if with_memory {
                let fitted = self.build(&Fit { memory: true, ..fit }, None, &quiet)?;
                let name = format!("{profile}, before-newest");
                arms.push(engine_arm(&name, RowKind::Profile, fitted));
            }
        }
        for id in engines {
            arms.push(engine_arm(id, RowKind::Engine, self.fit(None, Some(id), None, &quiet)?));
        }
        Ok(arms)
    }

    /// Returns the data of the session that an evaluation needs.
    pub(super) fn setup(&self, counter: Counter, out: &Out) -> anyhow::Result<EvalSetup> {
        let base = self.fit(None, None, None, out)?;
        let count =
            |text: &Option<String>| text.as_deref().map(|t| counter.text(t)).unwrap_or_default();
        Ok(EvalSetup {
            baseline: Baseline::of(self.transcript, &base.ledger)?,
            session: SessionReport::of(self.path, self.transcript)?,
            window: base.ledger.window(),
            counter,
            system: count(&self.transcript.system_prompt),
            tools: count(&self.transcript.tools),
            model: base.model,
            prices: base.prices,
            compact_to: COMPACT_TO,
        })
    }
}

pub(super) fn engine_arm(name: &str, kind: RowKind, fitted: Fitted) -> EngineArm {
    EngineArm { name: name.to_owned(), kind, engine: fitted.engine, ledger: fitted.ledger }
}

/// Returns the named presets; without names, all.
pub(super) fn presets(names: &[String]) -> anyhow::Result<Vec<Preset>> {
    if names.is_empty() {
        return Ok(PRESETS.to_vec());
    }
    names.iter().map(|name| Preset::find(name).map_err(misuse)).collect()
}
