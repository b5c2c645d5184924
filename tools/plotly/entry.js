// plotly.js with the traces that octweb draws: scatter, which is part of the core, and bar.
const Plotly = require("plotly.js/lib/core");

Plotly.register([require("plotly.js/lib/bar")]);
module.exports = Plotly;
