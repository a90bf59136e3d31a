//! `ctx config`.

use std::path::PathBuf;
use std::process::ExitCode;

use ctx_config::Config;
use ctx_terminal::out::{GREEN, Out};

use crate::args::{self, Global};
use crate::{models, setup};

pub(crate) fn run(global: &Global, command: args::Config, out: &Out) -> anyhow::Result<ExitCode> {
    match command {
        args::Config::Show { profile, .. } => {
            let config = setup::config(global)?;
            let config = match profile {
                Some(profile) => config.with_profile(profile),
                None => config,
            };
            match config.path() {
                Some(path) => out.note(format!("from {}", path.display())),
                None => out.note("no configuration file; these are the defaults"),
            }
            out.json(&config.effective()?)?;
        }
        args::Config::Schema { .. } => out.json(&Config::schema())?,
        args::Config::Check { file, json } => {
            let config = valid_config(global, file.as_ref(), out)?;
            let warnings = models::problems(&config)?;
            for warning in &warnings {
                out.warn(warning);
            }
            let path = config.path().map(|p| p.display().to_string());
            if json {
                out.json(&serde_json::json!({
                    "ok": true, "path": path, "profile": config.profile(), "warnings": warnings,
                }))?;
            } else {
                let path = path.unwrap_or_else(|| "defaults (no file)".to_owned());
                let path = ctx_terminal::format::escaped(&path);
                out.line(format!("{GREEN}ok{GREEN:#} {path}, profile {}", config.profile()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the configuration if it is valid. All errors but the last are printed here.
fn valid_config(global: &Global, file: Option<&PathBuf>, out: &Out) -> anyhow::Result<Config> {
    let path = file.map_or_else(|| setup::config_file(global), |file| Ok(Some(file.clone())))?;
    let text = path.as_ref().and_then(|path| ctx_disk::read_to_string(path).ok());
    let mut faults = text.map(|text| Config::faults(&text)).unwrap_or_default();
    let config = match file {
        _ if !faults.is_empty() => Config::default(),
        Some(file) => Config::read(file)?,
        None => setup::config(global)?,
    };
    faults.extend(models::faults(&config)?);
    let path = path.map(|path| path.display().to_string());
    let named = faults.into_iter().map(|error| match &path {
        Some(path) => error.with("path", path).into(),
        None => error.into(),
    });
    let mut errors: Vec<anyhow::Error> = named.collect();
    if errors.is_empty() {
        errors.extend(setup::check_engine(&config).err());
    }
    let Some(last) = errors.pop() else { return Ok(config) };
    errors.iter().for_each(|error| out.error(error));
    Err(last)
}
