"""What several experiments share: common columns, control models, splits in an order."""
