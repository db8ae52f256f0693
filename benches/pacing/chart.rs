//! The picture: what was sent and accepted over time, and the limit.

use std::{fmt::Write, time::Duration};

use crate::{record::Record, server::At};

/// One run in the picture.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) record: Record,
}

/// Panels in a row.
const COLUMNS: usize = 3;
/// The size of one panel's plot, and of what is around it.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 24.0;
const ABOVE: f64 = 44.0;
const BELOW: f64 = 34.0;
const LEGEND: f64 = 36.0;
/// The rate at the upper edge; what is above is cut.
const TOP: f64 = 120.0;
/// One point for so much time.
const STEP: Duration = Duration::from_secs(2);

const ACCEPTED: &str = "#3f7fbf";
const REFUSED: &str = "#e8743b";
const LIMIT: &str = "#1d1d1f";
const TEXT: &str = "#333333";
const GRID: &str = "#dddddd";

/// The picture of all panels, in rows.
pub(crate) fn svg(panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(COLUMNS) as f64;
    let width = COLUMNS as f64 * (LEFT + WIDTH + RIGHT);
    let height = LEGEND + rows * (ABOVE + HEIGHT + BELOW);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\" fill=\"{TEXT}\">\n\
         <title>Requests a second, accepted and refused, against the server's limit</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <clipPath id=\"plot\"><rect width=\"{WIDTH}\" height=\"{HEIGHT}\"/></clipPath>\n"
    );
    text += &legend();
    for (index, panel) in panels.iter().enumerate() {
        let x = LEFT + (index % COLUMNS) as f64 * (LEFT + WIDTH + RIGHT);
        let y = LEGEND + ABOVE + (index / COLUMNS) as f64 * (ABOVE + HEIGHT + BELOW);
        put(
            &mut text,
            format_args!("<g transform=\"translate({x} {y})\">\n"),
        );
        text += &draw(panel);
        text += "</g>\n";
    }
    text + "</svg>\n"
}

fn legend() -> String {
    let area = |x: f64, colour: &str, name: &str| {
        format!(
            "<rect x=\"{x}\" y=\"12\" width=\"14\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"22\">{name}</text>\n",
            x + 20.0
        )
    };
    area(LEFT, ACCEPTED, "accepted, requests a second")
        + &area(
            LEFT + 200.0,
            REFUSED,
            "refused, on top: the upper edge is what was sent",
        )
        + &format!(
            "<path d=\"M{} 18h22\" stroke=\"{LIMIT}\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"/>\
             <text x=\"{}\" y=\"22\">the server's limit</text>\n",
            LEFT + 510.0,
            LEFT + 538.0
        )
}

fn draw(panel: &Panel) -> String {
    let record = &panel.record;
    let end = Duration::from_millis(record.allowed.len() as u64 * 100);
    let x = |at: At| at.as_secs_f64() / end.as_secs_f64() * WIDTH;
    let y = |rate: f64| HEIGHT - rate / TOP * HEIGHT;
    let mut text = format!(
        "<text y=\"-24\" font-size=\"13\" font-weight=\"bold\">{}</text><text y=\"-9\">{}</text>\n",
        panel.title, panel.caption
    );
    for rate in (0..=TOP as u32).step_by(40) {
        let height = y(f64::from(rate));
        put(
            &mut text,
            format_args!(
                "<path d=\"M0 {height:.1}h{WIDTH}\" stroke=\"{GRID}\"/>\
                 <text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{rate}</text>\n",
                height + 4.0
            ),
        );
    }
    for second in (0..=end.as_secs()).step_by(60) {
        let left = x(At::from_secs(second));
        put(
            &mut text,
            format_args!(
                "<text x=\"{left:.1}\" y=\"{}\" text-anchor=\"middle\">{second} s</text>\n",
                HEIGHT + 16.0
            ),
        );
    }
    let steps = (end.as_millis() / STEP.as_millis()) as u32;
    let spans: Vec<(At, At)> = (0..steps)
        .map(|step| (STEP * step, STEP * (step + 1)))
        .collect();
    let rate = |count: u32| f64::from(count) / STEP.as_secs_f64();
    let area = |colour: &str, top: &dyn Fn(At, At) -> f64| {
        let mut path = format!("<path d=\"M0 {HEIGHT}");
        for &(from, to) in &spans {
            let height = y(top(from, to));
            put(
                &mut path,
                format_args!("L{:.1} {height:.1}H{:.1}", x(from), x(to)),
            );
        }
        path + &format!("V{HEIGHT}Z\" fill=\"{colour}\"/>\n")
    };
    text += "<g clip-path=\"url(#plot)\">\n";
    text += &area(REFUSED, &|from, to| rate(record.sum(from, to).sent()));
    text += &area(ACCEPTED, &|from, to| rate(record.sum(from, to).accepted));
    let mut limit = String::new();
    for (cell, allowed) in record.allowed.iter().enumerate() {
        let (left, height) = (
            x(Duration::from_millis(cell as u64 * 100)),
            y(allowed * 10.0),
        );
        let before = cell.checked_sub(1).map(|before| record.allowed[before]);
        if before.is_none() {
            put(&mut limit, format_args!("M{left:.1} {height:.1}"));
        } else if before.is_some_and(|before| (before - allowed).abs() > 1e-9) {
            put(&mut limit, format_args!("H{left:.1}V{height:.1}"));
        }
    }
    put(
        &mut text,
        format_args!(
            "<path d=\"{limit}H{WIDTH}\" fill=\"none\" stroke=\"{LIMIT}\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"/>\n</g>\n"
        ),
    );
    text
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes everything");
}
