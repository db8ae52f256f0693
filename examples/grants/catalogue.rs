//! What the own server has to offer: invented, and the same each time.

use serde::Serialize;

const OPPORTUNITIES: usize = 4_500;

pub(crate) fn all() -> impl Iterator<Item = Opportunity> {
    (0..OPPORTUNITIES).map(Opportunity::generate)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opportunity {
    id: String,
    number: String,
    pub(crate) title: String,
    agency_code: &'static str,
    agency: &'static str,
    open_date: String,
    close_date: String,
    pub(crate) opp_status: &'static str,
    doc_type: &'static str,
    alnist: [String; 1],
}

impl Opportunity {
    fn generate(index: usize) -> Self {
        const AGENCIES: [(&str, &str); 4] = [
            ("DOE-GFO", "Golden Field Office"),
            ("HHS-NIH11", "National Institutes of Health"),
            ("NSF", "U.S. National Science Foundation"),
            ("USDA-NIFA", "National Institute of Food and Agriculture"),
        ];
        const KINDS: [&str; 3] = ["Research in", "Training for", "Small Grants for"];
        const FIELDS: [&str; 5] = [
            "Soil Health",
            "Rural Broadband",
            "Rare Diseases",
            "Solar Storage",
            "Coastal Erosion",
        ];
        let (agency_code, agency) = AGENCIES[index % AGENCIES.len()];
        let (kind, field) = (KINDS[index % KINDS.len()], FIELDS[index % FIELDS.len()]);
        let (month, day) = (1 + index % 6, 1 + index % 28);
        let (opp_status, doc_type) = match index % 11 {
            0 => ("closed", "synopsis"),
            1 => ("forecasted", "forecast"),
            _ => ("posted", "synopsis"),
        };
        Self {
            id: (300_000 + index).to_string(),
            number: format!("{agency_code}-26-{index:05}"),
            title: format!("{kind} {field}, part {}", 1 + index / 60),
            agency_code,
            agency,
            open_date: format!("{month:02}/{day:02}/2026"),
            close_date: format!("{:02}/{day:02}/2026", month + 6),
            opp_status,
            doc_type,
            alnist: [format!("{}.{:03}", 10 + index % 80, index % 900)],
        }
    }
}
