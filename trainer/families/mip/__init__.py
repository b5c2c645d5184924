"""Mixed-integer formulations over binary questions: FlowOCT, BendOCT, accelerated BendOCT, OCT, BinOCT."""
