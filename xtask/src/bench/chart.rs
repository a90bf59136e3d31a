//! The picture of the scale: what a turn costs by the length of a session, and by the number of sessions.

use std::path::Path;

use anyhow::{Context, Result};
use plotters::prelude::*;

use super::figures::Figures;

/// The figures of a curve begin with this id; the rest of the id is the place on the axis.
const CURVES: [(&str, &str); 2] = [
    ("turn-by-length-", "messages in the session"),
    ("turn-by-sessions-", "sessions in the process"),
];

const WIDTH: u32 = 900;
const HEIGHT: u32 = 340;

/// Draws the curves, if they were measured.
pub(super) fn write(path: &Path, figures: &Figures) -> Result<()> {
    let Some(group) = figures.group("scale") else { return Ok(()) };
    let root = SVGBackend::new(path, (WIDTH, HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, (id, axis)) in root.split_evenly((1, 2)).into_iter().zip(CURVES) {
        let points: Vec<(f64, f64)> = group
            .figures
            .iter()
            .filter_map(|figure| Some((figure.id.strip_prefix(id)?.parse().ok()?, figure.ctx)))
            .collect();
        let first = points.first().context("a curve without points")?.0;
        let last = points.last().context("a curve without points")?.0;
        let most = points.iter().map(|(_, cost)| *cost).fold(1.0, f64::max) * 1.3;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(56)
            .build_cartesian_2d((first..last.max(first * 10.0)).log_scale(), 0.0..most)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(axis)
            .y_desc("µs a turn")
            .x_label_formatter(&|count| format!("{count:.0}"))
            .draw()?;
        chart.draw_series(LineSeries::new(points.iter().copied(), BLUE.stroke_width(2)))?;
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 4, BLUE.filled())))?;
    }
    root.present()?;
    Ok(())
}
